//! Messages between ranks: one byte of kind, then the content. All ranks run the same version, or
//! leave after the first exchange: its form must not change.

use serde::{Deserialize, Serialize};

use crate::ranks::Left;

const DATA: u8 = 0;
const BEAT: u8 = 1;
const END: u8 = 2;
const FAILED: u8 = 3;
const PING: u8 = 4;
const PONG: u8 = 5;
const HAVE_RESULT: u8 = 6;
const GIVE: u8 = 7;
const RESULT: u8 = 8;
const NO_RESULT: u8 = 9;
const LEAVE: u8 = 10;
const DIED: u8 = 11;
const RELAYED: u8 = 12;
const ABORT_CHILDREN: u8 = 13;
const POST: u8 = 14;

/// A sign of life.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beat {
    /// How long this process has done nothing, milliseconds.
    pub(crate) idle_ms: u64,
    /// Its current work, in words.
    pub(crate) stage: String,
    /// Whether it is in its measured time.
    pub(crate) running: bool,
    pub(crate) bytes_per_s: u64,
    pub(crate) iops: u64,
    pub(crate) failed: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Data { what: String, bytes: Vec<u8> },
    Beat(Beat),
    End { code: u8, why: String },
    Failed { code: u8, why: String },
    Ping(u64),
    Pong { nonce: u64, at: u64 },
    HaveResult { saved: String },
    Give,
    Result(Result<Vec<u8>, String>),
    Leave(Left),
    Died { rank: u32 },
    Relayed { round: u32, bytes: Vec<u8> },
    AbortChildren { round: u32 },
    Post(Vec<u8>),
}

fn with(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(content.len() + 1);
    message.push(kind);
    message.extend_from_slice(content);
    message
}

pub(crate) fn data(what: &str, bytes: &[u8]) -> Vec<u8> {
    // An exchange's name is a few words.
    let length = u8::try_from(what.len()).unwrap_or(u8::MAX);
    let name = &what.as_bytes()[..usize::from(length)];
    with(DATA, &[&[length], name, bytes].concat())
}

pub(crate) fn beat(beat: &Beat) -> Vec<u8> {
    with(BEAT, &serde_json::to_vec(beat).unwrap_or_default())
}

pub(crate) fn end(code: u8, why: &str) -> Vec<u8> {
    with(END, &[&[code], why.as_bytes()].concat())
}

pub(crate) fn failed(code: u8, why: &str) -> Vec<u8> {
    with(FAILED, &[&[code], why.as_bytes()].concat())
}

pub(crate) fn ping(nonce: u64) -> Vec<u8> {
    with(PING, &nonce.to_le_bytes())
}

pub(crate) fn pong(nonce: u64, at: u64) -> Vec<u8> {
    with(PONG, &[nonce.to_le_bytes(), at.to_le_bytes()].concat())
}

pub(crate) fn have_result(saved: &str) -> Vec<u8> {
    with(HAVE_RESULT, saved.as_bytes())
}

pub(crate) fn give() -> Vec<u8> {
    with(GIVE, &[])
}

pub(crate) fn result(result: Result<Vec<u8>, String>) -> Vec<u8> {
    match result {
        Ok(bytes) => with(RESULT, &bytes),
        Err(why) => with(NO_RESULT, why.as_bytes()),
    }
}

pub(crate) fn leave(left: Left) -> Vec<u8> {
    with(LEAVE, &[left.code, u8::from(left.saved)])
}

pub(crate) fn died(rank: u32) -> Vec<u8> {
    with(DIED, &rank.to_le_bytes())
}

pub(crate) fn relayed(round: u32, bytes: &[u8]) -> Vec<u8> {
    with(RELAYED, &[&round.to_le_bytes()[..], bytes].concat())
}

pub(crate) fn post(bytes: &[u8]) -> Vec<u8> {
    with(POST, bytes)
}

pub(crate) fn abort_children(round: u32) -> Vec<u8> {
    with(ABORT_CHILDREN, &round.to_le_bytes())
}

pub(crate) fn is_relayed(message: &[u8]) -> bool {
    message.first() == Some(&RELAYED)
}

/// How urgent a message is: those of a clock are measured, heartbeats can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    Clock,
    Usual,
    Beat,
}

/// The urgency of a message, or of that inside a relayed one.
pub(crate) fn urgency(message: &[u8]) -> Urgency {
    match message {
        [RELAYED, _, _, _, _, inside @ ..] => urgency(inside),
        [PING | PONG, ..] => Urgency::Clock,
        [BEAT, ..] => Urgency::Beat,
        _ => Urgency::Usual,
    }
}

/// The message; `None` for what no gpuio of this version sends.
pub(crate) fn parse(message: &[u8]) -> Option<Message> {
    let (&kind, content) = message.split_first()?;
    let text = || String::from_utf8_lossy(content).into_owned();
    let number = |at: usize| {
        let bytes = content.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    Some(match kind {
        DATA => {
            let (&length, rest) = content.split_first()?;
            let (name, bytes) = rest.split_at_checked(usize::from(length))?;
            let what = String::from_utf8_lossy(name).into_owned();
            Message::Data { what, bytes: bytes.to_vec() }
        }
        BEAT => Message::Beat(serde_json::from_slice(content).ok()?),
        END | FAILED => {
            let (&code, why) = content.split_first()?;
            let why = String::from_utf8_lossy(why).into_owned();
            if kind == END { Message::End { code, why } } else { Message::Failed { code, why } }
        }
        PING => Message::Ping(number(0)?),
        PONG => Message::Pong { nonce: number(0)?, at: number(8)? },
        HAVE_RESULT => Message::HaveResult { saved: text() },
        GIVE => Message::Give,
        RESULT => Message::Result(Ok(content.to_vec())),
        NO_RESULT => Message::Result(Err(text())),
        LEAVE => match content {
            [code, saved] => Message::Leave(Left { code: *code, saved: *saved == 1 }),
            _ => return None,
        },
        RELAYED => {
            let (round, bytes) = content.split_at_checked(4)?;
            let round = u32::from_le_bytes(round.try_into().ok()?);
            Message::Relayed { round, bytes: bytes.to_vec() }
        }
        POST => Message::Post(content.to_vec()),
        ABORT_CHILDREN => {
            Message::AbortChildren { round: u32::from_le_bytes(content.try_into().ok()?) }
        }
        DIED => Message::Died { rank: u32::from_le_bytes(content.try_into().ok()?) },
        _ => return None,
    })
}
