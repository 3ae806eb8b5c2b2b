//! Rows as Arrow columns: exactly the schema that Spark checks.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::errors::ReadError;
use crate::queue::Message;

const MICROS_PER_MILLI: i64 = 1000;

/// What a row can have, by the names of Spark's own source and `cluster`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Key,
    Value,
    Topic,
    Partition,
    Offset,
    Timestamp,
    TimestampType,
    Headers,
    Cluster,
}

impl FromStr for Column {
    type Err = ReadError;

    fn from_str(name: &str) -> Result<Self, ReadError> {
        Ok(match name {
            "key" => Self::Key,
            "value" => Self::Value,
            "topic" => Self::Topic,
            "partition" => Self::Partition,
            "offset" => Self::Offset,
            "timestamp" => Self::Timestamp,
            "timestampType" => Self::TimestampType,
            "headers" => Self::Headers,
            "cluster" => Self::Cluster,
            other => return Err(ReadError::Invalid(format!("there is no column {other:?}"))),
        })
    }
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::TimestampType => "timestampType",
            Self::Headers => "headers",
            Self::Cluster => "cluster",
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Key | Self::Value => DataType::Binary,
            Self::Topic | Self::Cluster => DataType::Utf8,
            Self::Partition | Self::TimestampType => DataType::Int32,
            Self::Offset => DataType::Int64,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Headers => DataType::List(header_element()),
        }
    }
}

fn header_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)])
}

fn header_element() -> Arc<Field> {
    Arc::new(Field::new("element", DataType::Struct(header_fields()), true))
}

/// When a record batch is full.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_rows: usize,
    pub max_bytes: usize,
}

enum Builder {
    Key(BinaryBuilder),
    Value(BinaryBuilder),
    Topic(StringBuilder),
    Partition(Int32Builder),
    Offset(Int64Builder),
    Timestamp(TimestampMicrosecondBuilder),
    TimestampType(Int32Builder),
    Headers(ListBuilder<StructBuilder>),
    Cluster(StringBuilder),
}

impl Builder {
    fn new(column: Column, rows: usize) -> Self {
        match column {
            Column::Key => Self::Key(BinaryBuilder::with_capacity(rows, rows * 8)),
            Column::Value => Self::Value(BinaryBuilder::with_capacity(rows, rows * 64)),
            Column::Topic => Self::Topic(StringBuilder::with_capacity(rows, rows * 16)),
            Column::Partition => Self::Partition(Int32Builder::with_capacity(rows)),
            Column::Offset => Self::Offset(Int64Builder::with_capacity(rows)),
            Column::Timestamp => Self::Timestamp(
                TimestampMicrosecondBuilder::with_capacity(rows).with_data_type(Column::Timestamp.data_type()),
            ),
            Column::TimestampType => Self::TimestampType(Int32Builder::with_capacity(rows)),
            Column::Headers => Self::Headers(
                ListBuilder::new(StructBuilder::from_fields(header_fields(), 0)).with_field(header_element()),
            ),
            Column::Cluster => Self::Cluster(StringBuilder::with_capacity(rows, rows * 8)),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Key(builder) | Self::Value(builder) => Arc::new(builder.finish()),
            Self::Topic(builder) | Self::Cluster(builder) => Arc::new(builder.finish()),
            Self::Partition(builder) | Self::TimestampType(builder) => Arc::new(builder.finish()),
            Self::Offset(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
            Self::Headers(builder) => ArrayBuilder::finish(builder),
        }
    }
}

/// Rows that are being collected.
pub struct Columns {
    schema: SchemaRef,
    builders: Vec<Builder>,
    cluster: String,
    limits: Limits,
    rows: usize,
    bytes: usize,
}

impl Columns {
    pub fn new(columns: &[Column], cluster: &str, limits: Limits, expected_rows: usize) -> Self {
        let fields: Vec<Field> = columns.iter().map(|c| Field::new(c.name(), c.data_type(), true)).collect();
        let rows = expected_rows.min(limits.max_rows);
        Self {
            schema: Arc::new(Schema::new(fields)),
            builders: columns.iter().map(|column| Builder::new(*column, rows)).collect(),
            cluster: cluster.to_owned(),
            limits,
            rows: 0,
            bytes: 0,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many more rows fit.
    pub fn room(&self) -> usize {
        if self.bytes >= self.limits.max_bytes { 0 } else { self.limits.max_rows - self.rows }
    }

    /// Add a record. Never more than one of any size past `max_bytes`, so Arrow's limit of 2 GiB is out of reach:
    /// Kafka's records end at 1 GiB.
    pub fn push(&mut self, message: &Message, topic: &str, partition: i32) {
        self.rows += 1;
        self.bytes += message.key().map_or(0, <[u8]>::len) + message.value().map_or(0, <[u8]>::len);
        let (millis, kind) = message.timestamp();
        for builder in &mut self.builders {
            match builder {
                Builder::Key(builder) => builder.append_option(message.key()),
                Builder::Value(builder) => builder.append_option(message.value()),
                Builder::Topic(builder) => builder.append_value(topic),
                Builder::Partition(builder) => builder.append_value(partition),
                Builder::Offset(builder) => builder.append_value(message.offset()),
                Builder::Timestamp(builder) => builder.append_value(millis.saturating_mul(MICROS_PER_MILLI)),
                // librdkafka counts 0 none, 1 created, 2 appended; Spark −1, 0, 1
                Builder::TimestampType(builder) => builder.append_value(kind - 1),
                Builder::Headers(builder) => push_headers(builder, message),
                Builder::Cluster(builder) => builder.append_value(&self.cluster),
            }
        }
    }

    /// The rows so far; then it is empty.
    pub fn finish(&mut self) -> Result<RecordBatch, ReadError> {
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        // without any column the number of rows has to be said
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        self.bytes = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| ReadError::Failed(error.to_string()))
    }
}

fn push_headers(builder: &mut ListBuilder<StructBuilder>, message: &Message) {
    let entries = builder.values();
    let count = message.headers(|name, value| {
        if let Some(names) = entries.field_builder::<StringBuilder>(0) {
            names.append_value(name);
        }
        if let Some(values) = entries.field_builder::<BinaryBuilder>(1) {
            values.append_option(value);
        }
        entries.append(true);
    });
    builder.append(count > 0); // none: null, as Spark's own source has it
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_the_type_that_spark_checks() {
        let names =
            ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "cluster"];
        let columns: Vec<Column> = names.iter().map(|name| name.parse().expect("a column")).collect();
        let mut empty = Columns::new(&columns, "main", Limits { max_rows: 10, max_bytes: 10 }, 10);
        let batch = empty.finish().expect("a batch");
        let schema = batch.schema();
        assert_eq!(schema.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), names);
        assert!(schema.fields().iter().all(|field| field.is_nullable()));
        assert_eq!(batch.num_rows(), 0);
    }

    #[test]
    fn an_unknown_column_is_named() {
        let error = "values".parse::<Column>().expect_err("no such column");
        assert!(error.to_string().contains("values"));
    }
}
