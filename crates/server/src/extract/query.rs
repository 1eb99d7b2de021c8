//! Reads a Rust value from the parameters of a query string, with errors in words of the API. Pure.

use super::field_error::FieldError;
use serde::{
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Unexpected, Visitor,
        value::{MapAccessDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};
use std::borrow::Cow;

/// The decoder would replace invalid bytes with U+FFFD instead of refusing them.
pub fn parse<T: DeserializeOwned>(query: &str) -> Result<T, FieldError> {
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decoded(name)?, decoded(value)?));
    }
    for (index, (name, _)) in pairs.iter().enumerate() {
        if pairs[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(FieldError::new("it is there twice").inside(name));
        }
    }
    T::deserialize(MapAccessDeserializer::new(ParameterReader { pairs: pairs.into_iter(), current: None }))
}

fn decoded(text: &str) -> Result<String, FieldError> {
    let text = text.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&text).decode_utf8().map(Cow::into_owned);
    decoded.map_err(|_| FieldError::new("it is not valid UTF-8; percent-encode UTF-8 bytes"))
}

struct ParameterReader {
    pairs: std::vec::IntoIter<(String, String)>,
    current: Option<(String, String)>,
}

impl<'de> MapAccess<'de> for ParameterReader {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some((name, value)) = self.pairs.next() else { return Ok(None) };
        self.current = Some((name.clone(), value));
        seed.deserialize(StringDeserializer::<FieldError>::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        let (name, value) = self.current.take().unwrap_or_default();
        seed.deserialize(TextReader(value)).map_err(|error| error.inside(name))
    }
}

/// One value: a text that may stand for a number or a boolean.
struct TextReader(String);

impl TextReader {
    fn visit_whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match (self.0.parse::<u64>(), self.0.parse::<i64>()) {
            // No larger number is stored, or described.
            (Ok(whole), _) if !self.0.starts_with('+') && i64::try_from(whole).is_ok() => visitor.visit_u64(whole),
            (Err(_), Ok(whole)) => visitor.visit_i64(whole),
            _ => Err(FieldError::invalid_type(Unexpected::Str(&self.0), &visitor)),
        }
    }
}

impl<'de> Deserializer<'de> for TextReader {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_string(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0.as_str() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            other => Err(FieldError::invalid_type(Unexpected::Str(other), &visitor)),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0.parse() {
            Ok(number) => visitor.visit_f64(number),
            Err(_) => Err(FieldError::invalid_type(Unexpected::Str(&self.0), &visitor)),
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

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit_whole(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde::Deserialize;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Params {
        limit: Option<u32>,
        name: Option<String>,
        all: Option<bool>,
        by: Option<By>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "snake_case")]
    enum By {
        Agent,
        Room,
    }

    #[test]
    fn parameters_are_decoded_and_typed() {
        let read: Params = parse("limit=5&name=a%20b+c%26&all=true&&by=agent").unwrap();
        let name = Some("a b c&".to_owned());
        assert_eq!(read, Params { limit: Some(5), name, all: Some(true), by: Some(By::Agent) });
        assert_eq!(parse::<Params>("").unwrap().limit, None);
    }

    #[test]
    fn every_mistake_names_its_parameter() {
        for (query, detail) in [
            ("limit=abc", "limit: it must be a whole number from 0 to 4294967295, not \"abc\"."),
            ("limit=%2B5", "limit: it must be a whole number from 0 to 4294967295, not \"+5\"."),
            ("limit=-1", "limit: it must be a whole number from 0 to 4294967295, not -1."),
            ("limit=1&limit=2", "limit: it is there twice."),
            ("all=yes", "all: it must be true or false, not \"yes\"."),
            ("by=run", "by: it must be one of `agent`, `room`, not \"run\"."),
            ("before=x", "before: this field is unknown; the fields here are `limit`, `name`, `all`, `by`."),
            ("name=%ff", "The query string does not fit: it is not valid UTF-8; percent-encode UTF-8 bytes."),
        ] {
            assert_eq!(parse::<Params>(query).unwrap_err().into_query_problem().detail(), detail);
        }
    }
}
