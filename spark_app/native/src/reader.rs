//! One reader: many partitions, one consumer.
//!
//! Each partition has a queue of its own: a partition whose range is read is left alone, and what was fetched beyond
//! stays where it is for the next range, up to the bounds that the consumer is configured with.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use rdkafka::bindings::rd_kafka_resp_err_t as Code;
use rdkafka::consumer::Consumer;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};

use crate::columns::{Column, Columns, Limits};
use crate::consumer::{Watcher, connect};
use crate::errors::ReadError;
use crate::partition::{Event, Partition, Resumed};
use crate::queue::{Buffer, Client, PartitionQueue, ask_about_topics};
use crate::wake::Wake;

/// Messages taken from a queue by one call.
const CHUNK: usize = 4096;

/// Fewer rows are not handed out while more may come soon: small record batches cost more than they win.
const ENOUGH_ROWS: usize = 2048;

/// How long the interpreter is not asked for signals.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a cluster may take to say where the partitions of a new topic are: librdkafka asks after as long itself.
const INTRODUCTION: Duration = Duration::from_secs(1);

/// Rows expected of a range whose length says little.
const USUAL_ROWS: usize = 1 << 15;

#[derive(Debug, Clone)]
pub struct Range {
    pub topic: String,
    pub partition: i32,
    pub start: i64,
    pub end: i64,
    /// Leader epoch under which it was planned.
    pub term: Option<i32>,
}

pub struct Settings {
    pub cluster: String,
    pub columns: Vec<Column>,
    pub limits: Limits,
    pub stall: Duration,
}

/// What `next_batch` has come to.
pub enum Step {
    Rows(RecordBatch),
    Waiting,
    Done,
}

#[derive(Default)]
struct Counters {
    continued: u64,
    sought: u64,
    /// Questions about new topics.
    asked: u64,
    rows: usize,
    bytes: usize,
    waited: Duration,
}

/// See the module. Fields are dropped in this order: queues and messages go before their client.
pub struct Reader {
    partitions: Vec<Partition>,
    numbers: HashMap<(String, i32), usize>,
    /// Of `partitions`, those whose range is not read yet.
    outstanding: Vec<usize>,
    refreshed: Vec<String>,
    /// Topics that the client was told of, also of partitions that are not read any more.
    known: HashSet<String>,
    buffer: Buffer,
    wake: Arc<Wake>,
    settings: Settings,
    counters: Counters,
    pending: Option<Columns>,
    progressed: Instant,
    watcher: Watcher,
    client: Client,
}

impl Reader {
    pub fn new(config: &HashMap<String, String>, settings: Settings) -> Result<Self, ReadError> {
        let watcher = Watcher::default();
        Ok(Self {
            client: connect(config, watcher.clone())?,
            partitions: Vec::new(),
            numbers: HashMap::new(),
            outstanding: Vec::new(),
            refreshed: Vec::new(),
            known: HashSet::new(),
            buffer: Buffer::new(CHUNK),
            wake: Arc::default(),
            settings,
            counters: Counters::default(),
            pending: None,
            progressed: Instant::now(),
            watcher,
        })
    }

    /// Begin to read ranges; what an earlier use did not read to its end is forgotten.
    pub fn begin(&mut self, ranges: &[Range]) -> Result<(), ReadError> {
        check(ranges)?;
        self.outstanding.clear();
        self.refreshed.clear();
        self.pending = None;
        self.progressed = Instant::now();
        let (mut fresh, mut sought) = (TopicPartitionList::new(), TopicPartitionList::new());
        for range in ranges {
            self.begin_range(range, &mut fresh, &mut sought)?;
        }
        if sought.count() > 0 {
            let done = self.client.seek_partitions(sought, self.settings.stall).map_err(|e| self.failed(&e))?;
            for element in done.elements() {
                element.error().map_err(|e| self.failed(&e))?;
            }
        }
        if fresh.count() > 0 {
            self.client.incremental_assign(&fresh).map_err(|e| self.failed(&e))?;
            self.introduce(&fresh);
        }
        self.outstanding.retain(|number| !self.partitions[*number].is_done());
        Ok(())
    }

    fn begin_range(
        &mut self,
        range: &Range,
        fresh: &mut TopicPartitionList,
        sought: &mut TopicPartitionList,
    ) -> Result<(), ReadError> {
        let key = (range.topic.clone(), range.partition);
        let list = if let Some(number) = self.numbers.get(&key).copied() {
            self.outstanding.push(number);
            match self.partitions[number].resume(range, &mut self.buffer) {
                Resumed::GoesOn => {
                    self.counters.continued += 1;
                    return Ok(());
                }
                Resumed::MustSeek => sought,
            }
        } else {
            let queue = PartitionQueue::open(&self.client, &range.topic, range.partition, &self.wake)
                .ok_or_else(|| ReadError::Invalid(format!("no topic can be called {:?}", range.topic)))?;
            let made = Partition::new(range, queue);
            self.outstanding.push(self.partitions.len());
            self.numbers.insert(key, self.partitions.len());
            self.partitions.push(made);
            fresh
        };
        self.counters.sought += 1;
        list.add_partition_offset(&range.topic, range.partition, Offset::Offset(range.start))
            .map_err(|e| self.failed(&e))
    }

    /// Have the client look for the leaders of new topics now instead of within a second.
    fn introduce(&mut self, fresh: &TopicPartitionList) {
        let before = self.known.len();
        self.known.extend(fresh.elements().iter().map(|element| element.topic().to_owned()));
        if self.known.len() > before {
            self.counters.asked += 1;
            // without an answer librdkafka goes on asking, and the read says what is wrong if it stalls
            ask_about_topics(&self.client, INTRODUCTION);
        }
    }

    /// Rows when there are enough or nothing more comes; after a while without any, `Waiting`.
    pub fn next_batch(&mut self) -> Result<Step, ReadError> {
        let expected = self
            .outstanding
            .iter()
            .map(|number| self.partitions[*number].end().saturating_sub(self.partitions[*number].position()))
            .fold(0_i64, i64::saturating_add);
        let expected = usize::try_from(expected).unwrap_or(USUAL_ROWS).min(USUAL_ROWS);
        let mut rows = self.pending.take().unwrap_or_else(|| {
            Columns::new(&self.settings.columns, &self.settings.cluster, self.settings.limits, expected)
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.wake.clear();
            let moved = self.drain(&mut rows)?;
            let is_enough = rows.room() == 0 || (!moved && rows.rows() >= ENOUGH_ROWS);
            if is_enough || self.outstanding.is_empty() {
                return self.finish(&mut rows);
            }
            if moved {
                self.progressed = Instant::now();
                continue;
            }
            self.serve()?;
            if Instant::now() >= deadline {
                self.pending = Some(rows);
                return Ok(Step::Waiting);
            }
            let before = Instant::now();
            self.wake.wait(PATIENCE);
            self.counters.waited += before.elapsed();
        }
    }

    fn finish(&mut self, rows: &mut Columns) -> Result<Step, ReadError> {
        self.progressed = Instant::now();
        self.counters.rows += rows.rows();
        self.counters.bytes += rows.bytes();
        if rows.rows() == 0 { Ok(Step::Done) } else { rows.finish().map(Step::Rows) }
    }

    /// Move what is here; whether there was anything.
    fn drain(&mut self, rows: &mut Columns) -> Result<bool, ReadError> {
        let (mut moved, mut at) = (false, 0);
        while at < self.outstanding.len() && rows.room() > 0 {
            let number = self.outstanding[at];
            let partition = &mut self.partitions[number];
            let (has_moved, event) = partition.drain(rows, &mut self.buffer);
            moved |= has_moved;
            let is_done = partition.is_done();
            match event {
                Some(Event::Rewritten { offset, epoch }) => return Err(self.rewritten(number, offset, epoch)),
                Some(Event::Said { code, text }) => self.on_event(number, code, &text)?,
                None => {}
            }
            if is_done {
                self.outstanding.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(moved)
    }

    /// Errors of the whole consumer, statistics, refreshed tokens.
    fn serve(&mut self) -> Result<(), ReadError> {
        while let Some(said) = self.client.poll(Duration::ZERO) {
            if let Err(error) = said {
                self.watcher.note_error(error.to_string());
                if error.rdkafka_error_code().is_some_and(is_hopeless) {
                    return Err(self.failed(&error));
                }
            }
        }
        if let Some((_, text)) = self.client.client().fatal_error() {
            return Err(self.failed(&text));
        }
        if self.progressed.elapsed() >= self.settings.stall { Err(self.stalled()) } else { Ok(()) }
    }

    fn on_event(&mut self, number: usize, code: Code, text: &str) -> Result<(), ReadError> {
        let partition = &self.partitions[number];
        match RDKafkaErrorCode::from(code) {
            RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange => {
                Err(ReadError::OffsetsLost(format!(
                    "cluster {}, topic {}, partition {}: offset {} does not exist any more ({}): records were deleted \
                     before they were read, or the topic was recreated",
                    self.settings.cluster,
                    partition.topic,
                    partition.number,
                    partition.position(),
                    text
                )))
            }
            code if is_unknown(code) && !self.refreshed.contains(&partition.topic) => {
                // a consumer that was kept knows nothing of partitions that were added since
                let topic = partition.topic.clone();
                self.client.fetch_metadata(Some(&topic), self.settings.stall).map_err(|e| self.failed(&e))?;
                self.refreshed.push(topic);
                Ok(())
            }
            code if is_hopeless(code) || is_unknown(code) => Err(self.failed(&text)),
            _ => {
                self.watcher.note_error(text.to_owned());
                Ok(())
            }
        }
    }

    /// Stop fetching what was not read for so long; returns how many partitions are left.
    pub fn forget_idle(&mut self, age: Duration) -> Result<usize, ReadError> {
        if self.partitions.iter().all(|partition| partition.used.elapsed() < age) {
            return Ok(self.partitions.len()); // called after each use: as a rule there is nothing to do
        }
        let (mut idle, kept): (Vec<_>, Vec<_>) = self.partitions.drain(..).partition(|p| p.used.elapsed() >= age);
        self.partitions = kept;
        self.numbers = self.partitions.iter().enumerate().map(|(i, p)| ((p.topic.clone(), p.number), i)).collect();
        self.outstanding.clear();
        if !idle.is_empty() {
            let mut list = TopicPartitionList::new();
            for partition in &idle {
                list.add_partition(&partition.topic, partition.number);
            }
            self.client.incremental_unassign(&list).map_err(|e| self.failed(&e))?;
            for partition in &mut idle {
                partition.empty(&mut self.buffer);
            }
        }
        Ok(self.partitions.len())
    }

    #[allow(clippy::cast_precision_loss)] // for people
    pub fn counters(&self) -> HashMap<&'static str, f64> {
        let counters = &self.counters;
        HashMap::from([
            ("continued", counters.continued as f64),
            ("sought", counters.sought as f64),
            ("asked", counters.asked as f64),
            ("rows", counters.rows as f64),
            ("bytes", counters.bytes as f64),
            ("waited", counters.waited.as_secs_f64()),
        ])
    }

    pub fn statistics(&self) -> Option<String> {
        self.watcher.statistics()
    }

    fn failed(&self, why: &impl ToString) -> ReadError {
        ReadError::Failed(format!("cluster {}: {}", self.settings.cluster, why.to_string()))
    }

    fn rewritten(&self, number: usize, offset: i64, epoch: i32) -> ReadError {
        let partition = &self.partitions[number];
        let (topic, number) = (&partition.topic, partition.number);
        let text = format!(
            "cluster {}, topic {topic}, partition {number}: the log was cut and written again after this micro-batch \
             was planned (offset {offset} is of leader epoch {epoch}, the micro-batch of {})",
            self.settings.cluster,
            partition.term().unwrap_or_default()
        );
        ReadError::LogRewritten(text, topic.clone(), number, offset)
    }

    fn stalled(&self) -> ReadError {
        let example = self.outstanding.first().map_or_else(String::new, |number| {
            let partition = &self.partitions[*number];
            format!(
                "; waiting for {} {}, e.g. topic {}, partition {}, {} to {}",
                self.outstanding.len(),
                if self.outstanding.len() == 1 { "range" } else { "ranges" },
                partition.topic,
                partition.number,
                partition.position(),
                partition.end()
            )
        });
        let why = self.watcher.last_error().map_or_else(String::new, |text| format!(": {text}"));
        ReadError::Stalled(format!(
            "cluster {}: nothing arrived for {} s{example}{why}",
            self.settings.cluster,
            self.settings.stall.as_secs()
        ))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // records and queues refer to the consumer; it must be the last to go
        self.partitions.clear();
    }
}

/// A partition stands at one place: of two ranges one would be forgotten. Negative offsets are names of places.
fn check(ranges: &[Range]) -> Result<(), ReadError> {
    let mut seen = HashSet::new();
    for range in ranges {
        if range.partition < 0 || range.start < 0 || range.end < 0 {
            return Err(ReadError::Invalid(format!("numbers of a range are not negative: {range:?}")));
        }
        if !seen.insert((&range.topic, range.partition)) {
            return Err(ReadError::Invalid(format!("only one range of a partition at a time: {range:?}")));
        }
    }
    Ok(())
}

/// Waiting does not mend these: the task fails with what the broker said.
fn is_hopeless(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::SaslAuthenticationFailed
            | RDKafkaErrorCode::Authentication
            | RDKafkaErrorCode::Fatal
    )
}

/// A partition that the client, or the broker that it asked, has not heard of yet; hopeless if it stays so.
fn is_unknown(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownPartition | RDKafkaErrorCode::UnknownTopic
    )
}
