//! Streams of a GPU path, and what is in flight in each: numbered pieces of work with an event
//! behind each of them. A stream keeps order, so only the oldest of each is queried.

use std::collections::VecDeque;

use gpuio_gpu::{Context, Event, GpuError, Stream, Wait};

/// Work that is over: its number and whether it was done.
pub(super) type Ended = (u32, Result<(), GpuError>);

pub(super) struct StreamQueues {
    events: Vec<Event>,
    streams: Vec<Stream>,
    /// Work in flight, oldest first, one queue per stream.
    queues: Vec<VecDeque<u32>>,
    in_flight: usize,
    /// The stream to wait for next, so that waiting goes round.
    next: usize,
}

impl StreamQueues {
    /// `streams` streams for work with numbers below `numbers`, to be waited for without sleeping.
    pub(super) fn new(
        context: &Context,
        streams: u32,
        numbers: u32,
    ) -> Result<StreamQueues, GpuError> {
        StreamQueues::waited_for(context, streams, numbers, Wait::Spin)
    }

    /// The same, and how to wait for work.
    pub(super) fn waited_for(
        context: &Context,
        streams: u32,
        numbers: u32,
        wait: Wait,
    ) -> Result<StreamQueues, GpuError> {
        let streams = make(streams.min(numbers).max(1), || Stream::new(context))?;
        let events = make(numbers, || Event::new(context, wait))?;
        let queues = vec![VecDeque::with_capacity(events.len()); streams.len()];
        Ok(StreamQueues { events, streams, queues, in_flight: 0, next: 0 })
    }

    pub(super) fn count(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn stream(&self, at: usize) -> &Stream {
        &self.streams[at]
    }

    pub(super) fn none_in_flight(&self) -> bool {
        self.in_flight == 0
    }

    /// Records an event behind work `number`. `enqueued` is the driver's answer when the work was
    /// enqueued in stream `at`. The work is in flight until one of the calls below returns it. If
    /// the driver refused the work, a part of it or the event, the work is over when this returns:
    /// `ended` gets it, after all earlier work of the stream.
    pub(super) fn record(
        &mut self,
        at: usize,
        number: u32,
        enqueued: Result<(), GpuError>,
        ended: &mut Vec<Ended>,
    ) {
        let event = &self.events[number as usize];
        let recorded = enqueued.and_then(|()| event.record(&self.streams[at]));
        let Err(error) = recorded else {
            self.queues[at].push_back(number);
            self.in_flight += 1;
            return;
        };
        // A part of it may be in flight without an event. Work before it is taken by its own events
        // first, so that the stream's answer, which is not requested, is about this work, which
        // failed anyway.
        while let Some(earlier) = self.oldest(at) {
            ended.push(earlier);
        }
        let _ = self.streams[at].sync();
        ended.push((number, Err(error)));
    }

    /// The oldest work of a stream, if it is over.
    pub(super) fn poll_stream(&mut self, at: usize) -> Option<Ended> {
        let number = *self.queues[at].front()?;
        let result = match self.events[number as usize].query() {
            Ok(false) => return None,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        Some(self.ended(at, result))
    }

    /// Waits for the oldest work of a stream; nothing if it has none.
    pub(super) fn oldest(&mut self, at: usize) -> Option<Ended> {
        let number = *self.queues[at].front()?;
        let result = self.events[number as usize].sync();
        Some(self.ended(at, result))
    }

    /// Waits for the oldest work of the next stream in turn; nothing if none is in flight.
    pub(super) fn any(&mut self) -> Option<Ended> {
        (0..self.streams.len()).find_map(|_| {
            let at = self.next;
            self.next = (at + 1) % self.streams.len();
            self.oldest(at)
        })
    }

    /// Takes the oldest work of a stream off its queue.
    fn ended(&mut self, at: usize, result: Result<(), GpuError>) -> Ended {
        // Both callers looked at the front.
        let number = self.queues[at].pop_front().unwrap_or_default();
        self.in_flight -= 1;
        if result.is_err() {
            // Whether the work failed or only the question, it must be over before its memory is
            // used again. A stream that can't be waited for is one of a lost context.
            let event = &self.events[number as usize];
            let _ = event.sync().or_else(|_| self.streams[at].sync());
        }
        (number, result)
    }
}

fn make<T>(n: u32, mut one: impl FnMut() -> Result<T, GpuError>) -> Result<Vec<T>, GpuError> {
    (0..n).map(|_| one()).collect()
}

impl Drop for StreamQueues {
    /// Waits for all that is in flight.
    fn drop(&mut self) {
        for (stream, queue) in self.streams.iter().zip(&self.queues) {
            if stream.sync().is_ok() {
                continue;
            }
            // The answer may be a copy's failure, or a refusal to wait. A broken driver has
            // stopped its work as well; there is no caller left to report to.
            for &number in queue {
                let _ = self.events[number as usize].sync();
            }
        }
    }
}
