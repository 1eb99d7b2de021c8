//! A statement with its values, as data: written once for both databases, and sent by each in its own way.

use crate::StoreError;
use domain::run_tree::TreeLimit;
use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct Statement {
    /// Parameters are `$1`, `$2` and so on.
    pub sql: &'static str,
    pub values: Vec<Value>,
    /// If the statement changes no row, its commit is rejected with this error.
    pub must_change: Option<Refusal>,
}

/// Why a statement that changed no row rejects its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    KeyUsed,
    NotFound,
    RunStatus,
    /// The run that starts another one has ended, or has to stop.
    ParentStopped,
    TreeFull,
    ProjectLimit,
}

impl Refusal {
    pub(crate) const ALL: [Self; 6] =
        [Self::KeyUsed, Self::NotFound, Self::RunStatus, Self::ParentStopped, Self::TreeFull, Self::ProjectLimit];

    /// The name that SQLite reports, see `journal::sqlite`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::KeyUsed => "key_used",
            Self::NotFound => "not_found",
            Self::RunStatus => "run_status",
            Self::ParentStopped => "parent_stopped",
            Self::TreeFull => "tree_full",
            Self::ProjectLimit => "project_limit",
        }
    }
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::KeyUsed => Self::KeyUsed,
            Refusal::NotFound => Self::NotFound,
            Refusal::RunStatus => Self::RunStatusRefused,
            Refusal::ParentStopped => Self::Fenced,
            Refusal::TreeFull => Self::LimitReached(TreeLimit::Runs.to_string()),
            Refusal::ProjectLimit => {
                let detail = "this workspace has as many projects as it may have; delete some";
                Self::LimitReached(detail.to_owned())
            }
        }
    }
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
        Self { sql, values: Vec::new(), must_change: None }
    }

    pub(crate) fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    pub(crate) fn must_change_or(self, refusal: Refusal) -> Self {
        Self { must_change: Some(refusal), ..self }
    }
}

/// Names of models, tools and sessions come from providers, and PostgreSQL text cannot contain NUL: a NUL would make
/// the commit that ends the run fail.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
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
                $crate::commit::Value::Id(id) => query.bind(id),
                $crate::commit::Value::Number(number) => query.bind(number),
                $crate::commit::Value::Text(text) => query.bind(text),
                $crate::commit::Value::Bytes(bytes) => query.bind(bytes),
            };
        }
        query
    }};
}
pub(crate) use bind_all;
