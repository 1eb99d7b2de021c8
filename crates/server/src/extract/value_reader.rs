//! Reads a Rust value from a JSON value, strictly: an object is never read from an array (serde's derived code would take
//! the fields in their order in the source), and `4.0` is the integer 4, as JSON Schema says. Pure.

use super::field_error::{FieldError, one_of};
use serde::{
    de::{
        DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, VariantAccess, Visitor, value::StringDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Number, Value, map, value};

/// Floats have all whole numbers up to here.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

pub struct ValueReader(pub Value);

impl ValueReader {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => unexpected_number(number),
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        }
    }

    /// A whole number, also if it is written with a fraction of zero.
    fn visit_whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Number(number) => match (number.as_u64(), whole(&number)) {
                (Some(whole), _) => visitor.visit_u64(whole),
                (None, Some(whole)) => match u64::try_from(whole) {
                    Ok(whole) => visitor.visit_u64(whole),
                    Err(_) => visitor.visit_i64(whole),
                },
                (None, None) => Err(FieldError::invalid_type(unexpected_number(&number), &visitor)),
            },
            _ => self.deserialize_any(visitor),
        }
    }
}

/// The whole number that `4` and `4.0` both are.
fn whole(number: &Number) -> Option<i64> {
    let is_whole = |float: &f64| float.fract() == 0.0 && float.abs() <= MAX_EXACT_FLOAT;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within the exact range")]
    let from_float = || number.as_f64().filter(is_whole).map(|float| float as i64);
    number.as_i64().or_else(from_float)
}

/// Writes every whole number in JSON as one, for code that reads it with less patience.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = whole(number) {
                *value = whole.into();
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn unexpected_number(number: &Number) -> Unexpected<'static> {
    match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) => Unexpected::Unsigned(whole),
        (None, Some(whole)) => Unexpected::Signed(whole),
        (None, None) => Unexpected::Float(number.as_f64().unwrap_or_default()),
    }
}

impl<'de> Deserializer<'de> for ValueReader {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => visitor.visit_u64(whole),
                (None, Some(whole)) => visitor.visit_i64(whole),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            // Derived code for a tagged union would take the tag from the first entry.
            Value::Array(_) if (&visitor as &dyn Expected).to_string().contains("internally tagged enum") => {
                Err(FieldError::invalid_type(Unexpected::Seq, &visitor))
            }
            Value::Array(entries) => visit_entries(entries, visitor),
            Value::Object(fields) => visit_fields(fields, visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Object(fields) => visit_fields(fields, visitor),
            _ => Err(FieldError::invalid_type(self.unexpected(), &visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(VariantReader { name, content: None }),
            Value::Object(fields) if fields.len() == 1 => match fields.into_iter().next() {
                Some((name, content)) => visitor.visit_enum(VariantReader { name, content: Some(content) }),
                None => Err(FieldError::new(format!("it must be {}", one_of(variants)))),
            },
            _ => {
                let found = FieldError::invalid_type(self.unexpected(), &"enum ");
                let found = found.to_string().rsplit_once(", not ").map(|(_, found)| found.to_owned());
                Err(FieldError::new(format!("it must be {}, not {}", one_of(variants), found.unwrap_or_default())))
            }
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map identifier ignored_any
        i128 u128
    }
}

impl<'de> IntoDeserializer<'de, FieldError> for ValueReader {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn visit_entries<'de, V: Visitor<'de>>(entries: Vec<Value>, visitor: V) -> Result<V::Value, FieldError> {
    let mut entries = EntryReader { entries: entries.into_iter(), index: 0 };
    let value = visitor.visit_seq(&mut entries)?;
    match entries.entries.len() {
        0 => Ok(value),
        left => Err(FieldError::new(format!("it has {left} entries too many"))),
    }
}

fn visit_fields<'de, V: Visitor<'de>>(fields: Map<String, Value>, visitor: V) -> Result<V::Value, FieldError> {
    visitor.visit_map(FieldReader { fields: fields.into_iter(), current: None })
}

struct EntryReader {
    entries: std::vec::IntoIter<Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for EntryReader {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, FieldError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(ValueReader(entry)).map(Some).map_err(|error| error.inside(index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

struct FieldReader {
    fields: map::IntoIter,
    current: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for FieldReader {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some((name, content)) = self.fields.next() else { return Ok(None) };
        self.current = Some((name.clone(), content));
        seed.deserialize(StringDeserializer::<FieldError>::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        let (name, content) = self.current.take().unwrap_or_default();
        seed.deserialize(ValueReader(content)).map_err(|error| error.inside(name))
    }
}

struct VariantReader {
    name: String,
    content: Option<Value>,
}

impl<'de> EnumAccess<'de> for VariantReader {
    type Error = FieldError;
    type Variant = ContentReader;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, ContentReader), FieldError> {
        let variant = seed.deserialize(StringDeserializer::<FieldError>::new(self.name))?;
        Ok((variant, ContentReader(self.content)))
    }
}

struct ContentReader(Option<value::Value>);

impl<'de> VariantAccess<'de> for ContentReader {
    type Error = FieldError;

    fn unit_variant(self) -> Result<(), FieldError> {
        match self.0 {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(FieldError::new("it must be a name without content")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, FieldError> {
        seed.deserialize(ValueReader(self.0.unwrap_or_default()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, FieldError> {
        ValueReader(self.0.unwrap_or_default()).deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        ValueReader(self.0.unwrap_or_default()).deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::ValueReader;
    use serde::Deserialize;
    use serde_json::{Value, json};

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        count: u8,
        #[serde(default)]
        inner: Option<Inner>,
        #[serde(default)]
        choice: Choice,
        #[serde(default)]
        tagged: Option<Tagged>,
        #[serde(default)]
        any: Value,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    struct Inner {
        list: Vec<i64>,
    }

    #[derive(Deserialize, PartialEq, Debug, Default)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        #[default]
        First,
        Second,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Tagged {
        Named { name: String },
    }

    fn read(value: Value) -> Result<Outer, (String, String)> {
        Outer::deserialize(ValueReader(value)).map_err(|error| (error.pointer(), error.to_string()))
    }

    fn refused(value: Value) -> (String, String) {
        read(value).unwrap_err()
    }

    #[test]
    fn an_object_is_not_read_from_an_array_at_any_depth() {
        assert_eq!(refused(json!([1])), (String::new(), "it must be an object, not an array".to_owned()));
        assert_eq!(refused(json!({"count": 1, "inner": [[1]]})).0, "/inner");
        assert_eq!(refused(json!({"count": 1, "tagged": ["named", "x"]})).0, "/tagged");
    }

    #[test]
    fn a_whole_number_may_have_a_fraction_of_zero() {
        let outer = read(json!({"count": 4.0, "inner": {"list": [-3.0, 7]}, "any": 4.0})).unwrap();
        assert_eq!((outer.count, outer.inner), (4, Some(Inner { list: vec![-3, 7] })));
        assert_eq!(outer.any, json!(4.0), "free JSON stays as it is");
        assert_eq!(refused(json!({"count": 4.5})).1, "it must be a whole number from 0 to 255, not 4.5");
        assert_eq!(refused(json!({"count": 256})).1, "it must be a whole number from 0 to 255, not 256");
        assert_eq!(refused(json!({"count": 1e300})).0, "/count");
    }

    #[test]
    fn every_mistake_has_its_place_and_words_of_the_api() {
        assert_eq!(refused(json!({})), ("/count".to_owned(), "it is missing".to_owned()));
        assert_eq!(refused(json!({"count": 1, "inner": {"list": [1, "x"]}})).0, "/inner/list/1");
        let (place, what) = refused(json!({"count": 1, "cuont": 1}));
        assert_eq!(place, "/cuont");
        assert!(what.starts_with("this field is unknown; the fields here are `count`, `inner`"), "{what}");
        let (place, what) = refused(json!({"count": 1, "choice": "third"}));
        assert_eq!((place.as_str(), what.as_str()), ("/choice", "it must be one of `first`, `second`, not \"third\""));
        assert_eq!(refused(json!({"count": 1, "choice": 3})).1, "it must be one of `first`, `second`, not 3");
        assert_eq!(refused(json!({"count": null})).1, "it must be a whole number from 0 to 255, not null");
    }
}
