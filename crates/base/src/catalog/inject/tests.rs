use super::{Inject, InjectError};

#[test]
fn every_fault_can_be_written() {
    let inject: Inject =
        "eio=1%,short=5%,delay=2ms@10%,stall=300ms@5s,enospc=0.1%,lost=2%,rate=100M,iops=5000,\
         seed=7"
            .parse()
            .unwrap();
    let expected = Inject {
        eio: 0.01,
        enospc: 0.001,
        lost: 0.02,
        short: 0.05,
        delay: (0.1, 2_000_000),
        rate: Some(100 << 20),
        iops: Some(5000),
        stall: Some((5_000_000_000, 300_000_000)),
        seed: 7,
    };
    assert_eq!(inject, expected);
    assert!(inject.throttles());
    let every: Inject = "delay=5us".parse().unwrap();
    assert_eq!(every.delay, (1.0, 5_000));
    assert!(!every.throttles());
}

#[test]
fn a_bad_text_is_named() {
    let error = |text: &str| text.parse::<Inject>().unwrap_err();
    assert_eq!(error("eio"), InjectError::Shape("eio".into()));
    assert_eq!(error("stall=3ms"), InjectError::Shape("stall=3ms".into()));
    assert_eq!(error("oops=1%"), InjectError::Name("oops".into()));
    assert!(matches!(error("short=101%"), InjectError::Value { name, .. } if name == "short"));
    assert!(matches!(error("rate=0"), InjectError::Number { name, .. } if name == "rate"));
    assert!(matches!(error("iops=0"), InjectError::Number { name, .. } if name == "iops"));
    assert!(error("seed=x").to_string().contains("seed"));
}
