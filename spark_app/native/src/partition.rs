//! One partition of a reader: where it stands, and what was fetched past the end of a range.

use std::collections::VecDeque;
use std::time::Instant;

use rdkafka::bindings::rd_kafka_resp_err_t as Code;

use crate::columns::Columns;
use crate::queue::{Buffer, Message, PartitionQueue};
use crate::reader::Range;

/// How going on at an offset is possible.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumed {
    /// What is fetched goes on there.
    GoesOn,
    /// The consumer has to be sent there.
    MustSeek,
}

/// Something other than a record that may be delivered.
pub enum Event {
    /// librdkafka says something.
    Said { code: Code, text: String },
    /// A record that took the place of one that was planned: the log was cut since (KIP-320).
    Rewritten { offset: i64, epoch: i32 },
}

/// See the module.
///
/// What `kept` and the queue hold, in this order, are all records from `position` on.
pub struct Partition {
    pub topic: String,
    pub number: i32,
    queue: PartitionQueue,
    kept: VecDeque<Message>,
    position: i64,
    end: i64,
    /// Leader epoch under which the range was planned.
    term: Option<i32>,
    /// The broker had nothing before this offset any more that was not delivered.
    read_through: i64,
    pub used: Instant,
}

impl Partition {
    /// A partition that is about to be assigned at the start of `range`.
    pub fn new(range: &Range, queue: PartitionQueue) -> Self {
        Self {
            topic: range.topic.clone(),
            number: range.partition,
            queue,
            kept: VecDeque::new(),
            position: range.start,
            end: range.end,
            term: range.term,
            read_through: range.start,
            used: Instant::now(),
        }
    }

    pub fn position(&self) -> i64 {
        self.position
    }

    pub fn end(&self) -> i64 {
        self.end
    }

    pub fn term(&self) -> Option<i32> {
        self.term
    }

    pub fn is_done(&self) -> bool {
        self.position >= self.end
    }

    /// Take on another range. What was fetched under another leader may be gone from the log: it is fetched again.
    pub fn resume(&mut self, range: &Range, buffer: &mut Buffer) -> Resumed {
        let (start, end) = (range.start, range.end);
        let is_same_log = self.term == range.term;
        (self.used, self.end, self.term) = (Instant::now(), end, range.term);
        if is_same_log && start > self.position {
            self.skip_to(start, buffer);
        }
        if !is_same_log || start != self.position {
            self.kept.clear();
            (self.position, self.read_through) = (start, start);
            return Resumed::MustSeek;
        }
        if self.read_through >= end {
            self.position = end;
        }
        Resumed::GoesOn
    }

    /// Somebody else has read what comes first: drop it, if what comes next is here too.
    fn skip_to(&mut self, start: i64, buffer: &mut Buffer) {
        loop {
            while self.kept.front().is_some_and(|message| message.offset() < start) {
                self.kept.pop_front();
            }
            if !self.kept.is_empty() || self.read_through >= start {
                self.position = start;
                return;
            }
            let kept = &mut self.kept;
            if self.queue.take(buffer, usize::MAX, |message| kept.push_back(message)) == 0 {
                return;
            }
        }
    }

    /// Free what was fetched, once the consumer does not read this partition any more: librdkafka keeps the records in
    /// the partition's queue until someone takes them, and nobody will.
    pub fn empty(&mut self, buffer: &mut Buffer) {
        self.kept.clear();
        while self.queue.take(buffer, usize::MAX, drop) > 0 {}
    }

    /// Move records that are here into `rows`, without waiting; whether there were any, and what else was said.
    pub fn drain(&mut self, rows: &mut Columns, buffer: &mut Buffer) -> (bool, Option<Event>) {
        let mut moved = false;
        while !self.is_done() && rows.room() > 0 {
            let Some(message) = self.next(rows.room(), buffer) else { break };
            moved = true;
            if let Some(event) = self.accept(&message, rows) {
                return (moved, Some(event));
            }
            if self.is_beyond(&message) {
                self.kept.push_front(message);
            }
        }
        (moved, None)
    }

    /// Taken from the queue by many at once, but never more than the range can have.
    fn next(&mut self, room: usize, buffer: &mut Buffer) -> Option<Message> {
        if self.kept.is_empty() {
            let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
            let kept = &mut self.kept;
            self.queue.take(buffer, left.min(room), |message| kept.push_back(message));
        }
        self.kept.pop_front()
    }

    fn is_beyond(&self, message: &Message) -> bool {
        message.code() == Code::RD_KAFKA_RESP_ERR_NO_ERROR && message.offset() >= self.end
    }

    fn accept(&mut self, message: &Message, rows: &mut Columns) -> Option<Event> {
        let offset = message.offset();
        match message.code() {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR if offset >= self.end => self.position = self.end,
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => {
                // smaller: from before a seek took effect
                if offset >= self.position {
                    let epoch = message.leader_epoch();
                    if self.term.is_some_and(|term| epoch > term) {
                        return Some(Event::Rewritten { offset, epoch });
                    }
                    rows.push(message, &self.topic, self.number);
                    self.position = offset + 1;
                }
            }
            Code::RD_KAFKA_RESP_ERR__PARTITION_EOF => {
                self.read_through = self.read_through.max(offset);
                if offset >= self.end {
                    self.position = self.end;
                }
            }
            code => return Some(Event::Said { code, text: message.text() }),
        }
        None
    }
}
