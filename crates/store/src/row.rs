//! Reads a query's result into a struct, on both databases. Replaces `derive(sqlx::FromRow)`: sqlx's procedural macros
//! would make cargo build sqlx, SQLite and TLS a second time.

/// Defines a struct whose fields are read from the columns of the same names. A first field `..name: OtherRow` is read
/// from the same result as a row struct of its own.
macro_rules! row {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $(..$nested:ident: $nested_type:ty,)?
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $field_type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($nested: $nested_type,)?
            $($(#[$field_attribute])* $field_visibility $field: $field_type,)*
        }

        impl<'r, R> sqlx::FromRow<'r, R> for $name
        where
            R: sqlx::Row,
            &'static str: sqlx::ColumnIndex<R>,
            $($nested_type: sqlx::FromRow<'r, R>,)?
            $($field_type: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,)*
        {
            fn from_row(row: &'r R) -> sqlx::Result<Self> {
                Ok(Self {
                    $($nested: <$nested_type as sqlx::FromRow<'r, R>>::from_row(row)?,)?
                    $($field: row.try_get(stringify!($field))?,)*
                })
            }
        }
    };
}

pub(crate) use row;
