//! Why reading ended: each kind is an exception of its own in Python.

use std::fmt;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(balanced_source_native, NativeReadError, PyException, "Reading failed for good.");
create_exception!(balanced_source_native, NativeOffsetsLost, NativeReadError, "Records of a range are gone.");
create_exception!(balanced_source_native, NativeLogRewritten, NativeOffsetsLost, "Other records have its offsets.");
create_exception!(balanced_source_native, NativeReadStalled, NativeReadError, "Nothing arrived for too long.");

/// See the exceptions of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// What a user has set makes no sense.
    Invalid(String),
    Failed(String),
    OffsetsLost(String),
    /// What happened, topic, partition, and the first offset that another record has.
    LogRewritten(String, String, i32, i64),
    Stalled(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text)
            | Self::Failed(text)
            | Self::OffsetsLost(text)
            | Self::LogRewritten(text, ..)
            | Self::Stalled(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for PyErr {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Invalid(text) => PyValueError::new_err(text),
            ReadError::Failed(text) => NativeReadError::new_err(text),
            ReadError::OffsetsLost(text) => NativeOffsetsLost::new_err(text),
            ReadError::LogRewritten(text, topic, partition, offset) => {
                NativeLogRewritten::new_err((text, topic, partition, offset))
            }
            ReadError::Stalled(text) => NativeReadStalled::new_err(text),
        }
    }
}

/// Make the exceptions known to Python.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("NativeReadError", py.get_type::<NativeReadError>())?;
    module.add("NativeOffsetsLost", py.get_type::<NativeOffsetsLost>())?;
    module.add("NativeLogRewritten", py.get_type::<NativeLogRewritten>())?;
    module.add("NativeReadStalled", py.get_type::<NativeReadStalled>())
}
