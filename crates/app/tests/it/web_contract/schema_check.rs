//! Checks values against schemas of the OpenAPI document. Covers what these schemas use, and is stricter than JSON Schema:
//! a field that is not described is a mistake, because generated types would not have it.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub struct SchemaCheck<'a> {
    document: &'a Value,
    /// The fields that were seen, as `Component.field`.
    pub seen: BTreeSet<String>,
}

impl<'a> SchemaCheck<'a> {
    pub fn new(document: &'a Value) -> Self {
        Self { document, seen: BTreeSet::new() }
    }

    /// Checks a value against a component. The error says where the first mistake is.
    pub fn check(&mut self, component: &str, value: &Value) -> Result<(), String> {
        self.check_value(self.component(component), value, component)
    }

    pub fn component(&self, name: &str) -> &'a Value {
        &self.document["components"]["schemas"][name]
    }

    fn check_value(&mut self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = component_name(reference);
            return match self.component(name) {
                Value::Null => Err(format!("{at}: {reference} does not exist")),
                target => self.check_value(target, value, name),
            };
        }
        if let Some(variants) = schema["oneOf"].as_array() {
            return self.check_one_of(schema, variants, value, at);
        }
        if schema.get("allOf").is_some() || schema.get("properties").is_some() {
            return self.check_object(schema, value, at);
        }
        check_type(schema, value, at)?;
        if let (Some(allowed), Value::Object(fields)) = (schema.get("additionalProperties"), value) {
            for (name, field) in fields {
                self.check_value(allowed, field, &format!("{at}.{name}"))?;
            }
        }
        if let (Some(items), Value::Array(values)) = (schema.get("items"), value) {
            for item in values {
                self.check_value(items, item, &format!("{at}[]"))?;
            }
        }
        Ok(())
    }

    fn check_one_of(
        &mut self,
        schema: &'a Value,
        variants: &'a [Value],
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        if let Some(property) = schema["discriminator"]["propertyName"].as_str() {
            let name = value[property].as_str().unwrap_or_default();
            let reference = schema["discriminator"]["mapping"][name].as_str();
            let chosen = variants.iter().find(|variant| reference.is_some() && variant["$ref"].as_str() == reference);
            let variant = chosen.ok_or_else(|| format!("{at}: no variant for {property} {name:?}"))?;
            return self.check_value(variant, value, at);
        }
        let mut errors = Vec::new();
        let mut fitting = 0;
        for variant in variants {
            match self.check_value(variant, value, at) {
                Ok(()) => fitting += 1,
                Err(error) => errors.push(error),
            }
        }
        if fitting == 1 {
            Ok(())
        } else {
            Err(format!("{at}: {fitting} of {} variants fit: {errors:?}", variants.len()))
        }
    }

    fn check_object(&mut self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let Value::Object(fields) = value else { return Err(format!("{at}: not an object: {value}")) };
        let mut parts = Vec::new();
        self.collect_parts(schema, at, &mut parts);
        for (_, part) in &parts {
            for required in part["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !fields.contains_key(required) {
                    return Err(format!("{at}: {required} is missing"));
                }
            }
        }
        for (name, field) in fields {
            let described = parts.iter().find_map(|(owner, part)| Some((owner, part["properties"].get(name)?)));
            let (owner, described) = described.ok_or_else(|| format!("{at}: {name} is not described"))?;
            self.seen.insert(format!("{owner}.{name}"));
            self.check_value(described, field, &format!("{at}.{name}"))?;
        }
        Ok(())
    }

    /// The objects that an `allOf` consists of, each with the component that it belongs to.
    fn collect_parts(&self, schema: &'a Value, owner: &str, parts: &mut Vec<(String, &'a Value)>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = component_name(reference);
            return self.collect_parts(self.component(name), name, parts);
        }
        match schema["allOf"].as_array() {
            Some(all) => all.iter().for_each(|part| self.collect_parts(part, owner, parts)),
            None => parts.push((owner.to_owned(), schema)),
        }
    }
}

/// The fields of a component, as `Component.field`.
pub fn fields_of(component: &str, schema: &Value) -> BTreeSet<String> {
    let properties: Option<&Map<String, Value>> = schema["properties"].as_object();
    properties.into_iter().flatten().map(|(name, _)| format!("{component}.{name}")).collect()
}

pub fn component_name(reference: &str) -> &str {
    reference.trim_start_matches("#/components/schemas/")
}

fn check_type(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        // Any value.
        _ => return Ok(()),
    };
    let fits = types.iter().any(|one| match *one {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    });
    let listed = schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value));
    if fits && listed { Ok(()) } else { Err(format!("{at}: {value} is not {types:?} of {}", schema["enum"])) }
}
