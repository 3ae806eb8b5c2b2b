//! The consumer, and what it says of itself in passing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::KafkaError;

use crate::errors::ReadError;
use crate::queue::Client;

#[derive(Default)]
struct Said {
    error: Option<String>,
    statistics: Option<String>,
}

/// Keeps the last error and the last statistics; writes no log, for messages may name what is secret.
#[derive(Clone, Default)]
pub struct Watcher {
    said: Arc<Mutex<Said>>,
}

impl Watcher {
    /// Why nothing arrives, if librdkafka has said anything.
    pub fn last_error(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).error.clone()
    }

    pub fn statistics(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).statistics.clone()
    }

    pub fn note_error(&self, text: String) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).error = Some(text);
    }
}

impl ClientContext for Watcher {
    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.note_error(format!("{error}: {reason}"));
    }

    fn stats_raw(&self, statistics: &[u8]) {
        let text = String::from_utf8_lossy(statistics).into_owned();
        self.said.lock().unwrap_or_else(PoisonError::into_inner).statistics = Some(text);
    }
}

impl ConsumerContext for Watcher {}

/// A consumer that joins no group and has nothing assigned yet.
pub fn connect(config: &HashMap<String, String>, watcher: Watcher) -> Result<Client, ReadError> {
    let mut made = ClientConfig::new();
    for (key, value) in config {
        made.set(key, value);
    }
    let consumer: BaseConsumer<Watcher> = made.create_with_context(watcher).map_err(|error| {
        // the value is left out: it may be a secret
        match error {
            KafkaError::ClientConfig(_, why, key, _) => ReadError::Invalid(format!("{key}: {why}")),
            other => ReadError::Failed(format!("cannot make a consumer: {other}")),
        }
    })?;
    Ok(Arc::new(consumer))
}
