//! Safe wrappers of the parts of librdkafka that its Rust library has no interface for: taking many messages at once
//! from the queue of one partition, and asking about all topics of a client at once.
//!
//! All unsafe code of the crate is here. What it rests on, from librdkafka's documentation and source:
//! - a queue is alive from `rd_kafka_queue_get_partition` to `rd_kafka_queue_destroy`, and must be destroyed before its
//!   client; [`PartitionQueue`] holds the client, so that it cannot go first;
//! - a message is ours from `rd_kafka_consume_batch_queue` to `rd_kafka_message_destroy`, does not change in between,
//!   and may be used and destroyed by any thread; its pointers are null or point to as many bytes as it says;
//! - the event callback is called under the queue's lock, which `rd_kafka_queue_cb_event_enable` takes too: once that
//!   has returned, no call with the old value is under way.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as ffi;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::consumer::Watcher;
use crate::wake::Wake;

pub type Client = Arc<BaseConsumer<Watcher>>;
type Code = ffi::rd_kafka_resp_err_t;

/// What librdkafka has fetched of one partition and nobody has taken yet.
pub struct PartitionQueue {
    queue: NonNull<ffi::rd_kafka_queue_t>,
    wake: Arc<Wake>,
    _client: Client,
}

// SAFETY: librdkafka's queues are guarded by their own locks and bound to no thread.
unsafe impl Send for PartitionQueue {}

impl PartitionQueue {
    /// The queue of a partition, from now on apart from the consumer's common one; None if the name cannot be one.
    pub fn open(client: &Client, topic: &str, partition: i32, wake: &Arc<Wake>) -> Option<Self> {
        let topic = CString::new(topic).ok()?;
        // SAFETY: the client is alive, the name is a C string; the call copies it.
        let queue =
            unsafe { ffi::rd_kafka_queue_get_partition(client.client().native_ptr(), topic.as_ptr(), partition) };
        let queue = NonNull::new(queue)?;
        // SAFETY: the queue is alive; null as target means: to nobody. `opaque` stays valid until `drop` disables the
        // callback, for `self` holds the Arc that it points into.
        unsafe {
            ffi::rd_kafka_queue_forward(queue.as_ptr(), ptr::null_mut());
            let opaque = Arc::as_ptr(wake).cast_mut().cast::<c_void>();
            ffi::rd_kafka_queue_cb_event_enable(queue.as_ptr(), Some(on_event), opaque);
        }
        Some(Self { queue, wake: Arc::clone(wake), _client: Arc::clone(client) })
    }

    /// Take what is there, without waiting: at most as many as `buffer` is long. Events of other kinds are served.
    pub fn take(&self, buffer: &mut Buffer, limit: usize, mut to: impl FnMut(Message)) -> usize {
        let limit = limit.min(buffer.0.len());
        // SAFETY: the buffer has room for `limit` pointers.
        let taken = unsafe { ffi::rd_kafka_consume_batch_queue(self.queue.as_ptr(), 0, buffer.0.as_mut_ptr(), limit) };
        let taken = usize::try_from(taken).unwrap_or(0);
        for raw in &buffer.0[..taken.min(limit)] {
            if let Some(message) = NonNull::new(*raw) {
                to(Message(message));
            }
        }
        taken
    }
}

impl Drop for PartitionQueue {
    fn drop(&mut self) {
        // SAFETY: the queue is alive and not used after this; the callback is off before its opaque value may go.
        unsafe {
            ffi::rd_kafka_queue_cb_event_enable(self.queue.as_ptr(), None, ptr::null_mut());
            ffi::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
        self.wake.set(); // nobody is to wait for a queue that is gone
    }
}

/// Ask the cluster about all topics that the client knows by name.
///
/// librdkafka asks by itself at the first connection, and later once a second: a partition of a topic that is new to
/// the client waits until then.
pub fn ask_about_topics(client: &Client, patience: Duration) {
    let mut found = ptr::null();
    let millis = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the client is alive; zero and null mean: the topics that are known here. The answer is ours if there is
    // one, and is destroyed once. What it says, librdkafka has noted by then.
    unsafe {
        ffi::rd_kafka_metadata(client.client().native_ptr(), 0, ptr::null_mut(), &raw mut found, millis);
        if !found.is_null() {
            ffi::rd_kafka_metadata_destroy(found);
        }
    }
}

/// Called by librdkafka's threads when something arrives.
unsafe extern "C" fn on_event(_: *mut ffi::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: see `PartitionQueue::open`.
    let wake = unsafe { &*opaque.cast::<Wake>() };
    wake.set();
}

/// Room for the messages of one call.
pub struct Buffer(Vec<*mut ffi::rd_kafka_message_t>);

// SAFETY: between calls the pointers are left-overs that nobody follows.
unsafe impl Send for Buffer {}

impl Buffer {
    pub fn new(size: usize) -> Self {
        Self(vec![ptr::null_mut(); size])
    }
}

/// A record, or an event about its partition.
pub struct Message(NonNull<ffi::rd_kafka_message_t>);

// SAFETY: see the module.
unsafe impl Send for Message {}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used after this.
        unsafe { ffi::rd_kafka_message_destroy(self.0.as_ptr()) }
    }
}

impl Message {
    fn raw(&self) -> &ffi::rd_kafka_message_t {
        // SAFETY: it is ours and does not change.
        unsafe { self.0.as_ref() }
    }

    /// `NO_ERROR` for a record.
    pub fn code(&self) -> Code {
        self.raw().err
    }

    pub fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// Of the leader that wrote the record; negative when the log does not say.
    pub fn leader_epoch(&self) -> i32 {
        // SAFETY: the message is ours.
        unsafe { ffi::rd_kafka_message_leader_epoch(self.0.as_ptr()) }
    }

    pub fn key(&self) -> Option<&[u8]> {
        let raw = self.raw();
        // SAFETY: null, or as many bytes, for as long as the message lives.
        (!raw.key.is_null()).then(|| unsafe { slice::from_raw_parts(raw.key.cast::<u8>(), raw.key_len) })
    }

    pub fn value(&self) -> Option<&[u8]> {
        let raw = self.raw();
        // SAFETY: null, or as many bytes, for as long as the message lives.
        (!raw.payload.is_null()).then(|| unsafe { slice::from_raw_parts(raw.payload.cast::<u8>(), raw.len) })
    }

    /// Milliseconds since the epoch, −1 if there are none; and 0 none, 1 created, 2 appended.
    pub fn timestamp(&self) -> (i64, i32) {
        let mut kind = ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is ours; the second argument is where the kind is written to.
        let millis = unsafe { ffi::rd_kafka_message_timestamp(self.0.as_ptr(), &raw mut kind) };
        (millis, kind as i32)
    }

    /// Calls `to` for each header in order; returns how many there were.
    pub fn headers(&self, mut to: impl FnMut(&str, Option<&[u8]>)) -> usize {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is ours; the headers belong to it and are not destroyed apart from it.
        let code = unsafe { ffi::rd_kafka_message_headers(self.0.as_ptr(), &raw mut headers) };
        if code != Code::RD_KAFKA_RESP_ERR_NO_ERROR {
            return 0;
        }
        let (mut number, mut name, mut value, mut size) = (0, ptr::null(), ptr::null(), 0);
        loop {
            // SAFETY: an index past the end gives an error and writes nothing.
            let code =
                unsafe { ffi::rd_kafka_header_get_all(headers, number, &raw mut name, &raw mut value, &raw mut size) };
            if code != Code::RD_KAFKA_RESP_ERR_NO_ERROR {
                return number;
            }
            // SAFETY: a C string, and null or `size` bytes, for as long as the message lives.
            unsafe {
                let bytes = (!value.is_null()).then(|| slice::from_raw_parts(value.cast::<u8>(), size));
                to(&CStr::from_ptr(name).to_string_lossy(), bytes);
            }
            number += 1;
        }
    }

    /// What librdkafka says of an event.
    pub fn text(&self) -> String {
        // SAFETY: the message is ours; the text belongs to it.
        let text = unsafe { ffi::rd_kafka_message_errstr(self.0.as_ptr()) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: a C string, for as long as the message lives.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
