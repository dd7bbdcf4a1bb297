//! The screen of `gpuio top`.

mod draw;
mod history;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_watch::{Interval, Watcher};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::failure::Failure;
use crate::interrupt;
use state::{Act, State};

/// Maximum delay of a key, and of Ctrl-C from elsewhere.
const NAP: Duration = Duration::from_millis(100);

/// Shows the screen until q, Ctrl-C, or the given number of intervals. Always restores the
/// terminal, even after a panic.
pub(crate) fn run(watcher: Watcher, every: Duration, count: Option<u64>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::Unavailable(format!("the terminal: {error}; --format text prints tables instead"))
    };
    // Before the terminal is another: a signal from here on finds it restored.
    let stop = interrupt::flag();
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = show(&mut terminal, watcher, (every, count), &stop);
    if ratatui::try_restore().is_err() {
        // The terminal has gone. Dropping it would print about that, and panic where nobody reads.
        std::mem::forget(terminal);
    }
    shown.map_err(failed)
}

/// Ends the program a second after a signal that the loop did not handle. After a hang-up, reads
/// from the terminal return 0 bytes over and over (termios(3), CLOCAL), and `event::poll` never
/// returns.
fn exit_after_hang_up(stop: Arc<AtomicBool>) -> std::io::Result<()> {
    let body = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(NAP);
        }
        std::thread::sleep(Duration::from_secs(1));
        let _ = ratatui::try_restore();
        std::process::exit(1);
    };
    std::thread::Builder::new().name("gpuio-hang-up".to_owned()).spawn(body).map(drop)
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    mut watcher: Watcher,
    (every, count): (Duration, Option<u64>),
    stop: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    exit_after_hang_up(Arc::clone(stop))?;
    let mut state = State::new(every, !anstyle_query::no_color(), host());
    let mut before = watcher.sample();
    let mut due = Instant::now() + state.every;
    let mut shown = 0;
    terminal.draw(|frame| draw::screen(frame, &state))?;
    while !stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left.min(NAP))? {
            let act = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let control = key.modifiers.contains(KeyModifiers::CONTROL);
                    let ends = control && key.code == KeyCode::Char('c');
                    if ends { Act::End } else { state.key(key.code) }
                }
                _ => Act::Draw,
            };
            match act {
                Act::End => break,
                Act::Again => due = Instant::now() + state.every,
                Act::Draw => {}
            }
            terminal.draw(|frame| draw::screen(frame, &state))?;
        }
        if Instant::now() < due {
            continue;
        }
        due = Instant::now() + state.every;
        let after = watcher.sample();
        state.take(Interval::between(&before, &after), clock());
        terminal.draw(|frame| draw::screen(frame, &state))?;
        before = after;
        shown += 1;
        if count.is_some_and(|count| shown >= count) {
            break;
        }
    }
    Ok(())
}

/// The machine's name, as the kernel has it (uname(2)).
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The time of day here.
fn clock() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}
