//! Reads exact offset ranges of many Kafka partitions into Arrow record batches.
//!
//! Python sees one class, [`RangeReader`]: it owns the consumer of one reader of a source and hands out record
//! batches by Arrow's C data interface. It waits and copies with the interpreter lock released.

mod columns;
mod consumer;
mod errors;
mod partition;
mod queue;
mod reader;
mod wake;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, RecordBatch, StructArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

pub use columns::{Column, Columns, Limits};
pub use errors::ReadError;
pub use reader::{Range, Reader, Settings};

/// A record batch on its way to Python; `pyarrow.record_batch(it)` takes it over without a copy.
#[pyclass(frozen, module = "balanced_source_native")]
struct NativeBatch {
    rows: RecordBatch,
}

#[pymethods]
impl NativeBatch {
    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema); // a wish that the protocol allows to be ignored
        let data = StructArray::from(self.rows.clone()).to_data();
        let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&data).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        // A capsule drops what it holds; both values call their release callback then, unless it was taken over.
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// librdkafka counts milliseconds in 32 bits.
const LONGEST: f64 = 2_000_000.0;

/// Seconds from Python; not below 0, not without end, and a number.
fn span(seconds: f64) -> Result<Duration, ReadError> {
    if (0.0..=LONGEST).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(ReadError::Invalid(format!("from 0 to {LONGEST} seconds, not {seconds}")))
}

/// A record batch that is full from the start would look like the end of all ranges.
fn at_least_one(limit: usize) -> Result<usize, ReadError> {
    if limit > 0 { Ok(limit) } else { Err(ReadError::Invalid("a record batch must have room for a row".into())) }
}

/// The consumer of one reader.
///
/// It may be kept between uses: what it fetched past the end of a range is kept for the next one.
#[pyclass(frozen, module = "balanced_source_native")]
struct RangeReader {
    inner: Mutex<Option<Reader>>,
}

impl RangeReader {
    fn locked(&self) -> MutexGuard<'_, Option<Reader>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Reader) -> Result<T, ReadError> + Send,
    ) -> PyResult<T> {
        py.detach(|| match self.locked().as_mut() {
            Some(reader) => work(reader),
            None => Err(ReadError::Failed("this reader is closed".into())),
        })
        .map_err(PyErr::from)
    }
}

#[pymethods]
impl RangeReader {
    /// Args:
    ///     config: of librdkafka.
    ///     cluster: content of the column of that name.
    ///     columns: names, in the order of the rows.
    ///     `max_rows`, `max_bytes`: when a record batch is full; at least 1.
    ///     stall: seconds without progress until an error.
    ///
    /// Raises:
    ///     `ValueError`: a limit is 0, or a time is no sensible number of seconds.
    ///     `NativeReadError`: librdkafka does not take the settings.
    #[new]
    #[pyo3(signature = (config, *, cluster, columns, max_rows, max_bytes, stall))]
    #[allow(clippy::needless_pass_by_value)] // extracted from Python
    fn new(
        config: HashMap<String, String>,
        cluster: String,
        columns: Vec<String>,
        max_rows: usize,
        max_bytes: usize,
        stall: f64,
    ) -> PyResult<Self> {
        let columns = columns.iter().map(|name| name.parse()).collect::<Result<Vec<Column>, _>>()?;
        let settings = Settings {
            cluster,
            columns,
            limits: Limits { max_rows: at_least_one(max_rows)?, max_bytes: at_least_one(max_bytes)? },
            stall: span(stall)?,
        };
        Ok(Self { inner: Mutex::new(Some(Reader::new(&config, settings)?)) })
    }

    /// Begin to read ranges: tuples of topic, partition, first offset, end offset (not included), and the leader epoch
    /// under which the range was planned, or None.
    ///
    /// Raises:
    ///     `ValueError`: a number is negative, or two ranges are of one partition; what was begun before goes on.
    fn begin(&self, py: Python<'_>, ranges: Vec<(String, i32, i64, i64, Option<i32>)>) -> PyResult<()> {
        let ranges: Vec<Range> = ranges
            .into_iter()
            .map(|(topic, partition, start, end, term)| Range { topic, partition, start, end, term })
            .collect();
        self.with(py, |reader| reader.begin(&ranges))
    }

    /// The next rows, or None when all ranges are read.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<NativeBatch>> {
        loop {
            match self.with(py, Reader::next_batch)? {
                reader::Step::Rows(rows) => return Ok(Some(NativeBatch { rows })),
                reader::Step::Done => return Ok(None),
                reader::Step::Waiting => py.check_signals()?,
            }
        }
    }

    /// Counters since the reader was made: ranges that went on where the last one ended, and others; rows; bytes;
    /// seconds of waiting for the brokers.
    fn counters(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, f64>> {
        self.with(py, |reader| Ok(reader.counters()))
    }

    /// Librdkafka's statistics, JSON; None before the first (`statistics.interval.ms`).
    fn statistics(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |reader| Ok(reader.statistics()))
    }

    /// Stop fetching partitions that were not read for so many seconds; returns how many are left.
    fn forget_idle(&self, py: Python<'_>, seconds: f64) -> PyResult<usize> {
        let age = span(seconds)?;
        self.with(py, |reader| reader.forget_idle(age))
    }

    /// Close the consumer. Calling it again does nothing.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.locked().take()));
    }
}

#[pymodule]
fn balanced_source_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<RangeReader>()?;
    module.add_class::<NativeBatch>()?;
    errors::register(module)
}
