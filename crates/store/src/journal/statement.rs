//! A statement with its values, as data: written once for both databases, and sent by each in its own way.

use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct Statement {
    /// Parameters are `$1`, `$2` and so on.
    pub sql: &'static str,
    pub values: Vec<Value>,
    /// The statement fails if it changes no row, because another server was faster. Not needed on SQLite: its single
    /// writer has already checked.
    pub must_change: bool,
}

/// A typed value: PostgreSQL needs the type of NULL.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Id(Option<Uuid>),
    Number(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), must_change: false }
    }

    pub(crate) fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    pub(crate) fn that_must_change(self) -> Self {
        Self { must_change: true, ..self }
    }
}

macro_rules! values {
    ($($kind:ident from $($plain:ty),+ => |$value:ident| $made:expr;)+) => {
        $($(impl From<$plain> for Value {
            fn from($value: $plain) -> Self {
                Self::$kind($made)
            }
        })+)+
    };
}

values! {
    Id from Uuid => |id| Some(id);
    Id from Option<Uuid> => |id| id;
    Number from i64 => |number| Some(number);
    Number from Option<i64> => |number| number;
    Text from String => |text| Some(text);
    Text from &str => |text| Some(text.to_owned());
    Text from Option<String> => |text| text;
    Text from Option<&str> => |text| text.map(ToOwned::to_owned);
    Bytes from &[u8] => |bytes| bytes.to_vec();
}

/// Binds values to a query of either database.
macro_rules! bind_all {
    ($query:expr, $values:expr) => {{
        let mut query = $query;
        for value in $values {
            query = match value {
                $crate::journal::statement::Value::Id(id) => query.bind(id),
                $crate::journal::statement::Value::Number(number) => query.bind(number),
                $crate::journal::statement::Value::Text(text) => query.bind(text),
                $crate::journal::statement::Value::Bytes(bytes) => query.bind(bytes),
            };
        }
        query
    }};
}
pub(crate) use bind_all;
