//! A merge patch (RFC 7396) of one level of settings, as the body of a PATCH: named fields are replaced, `null` clears a
//! field, all others stay. Its schema is made from the schema of the settings, so that the two cannot differ.

use crate::{error::Problem, extract::json};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{borrow::Cow, marker::PhantomData};
use utoipa::{
    __dev::ComposeSchema,
    ToSchema,
    openapi::{
        Object, OneOfBuilder, RefOr, Schema, Type,
        schema::{AdditionalProperties, SchemaType},
    },
};

/// The fields to change. They are checked when they are applied, because only together with the others they are settings.
#[derive(Clone, Debug)]
pub struct MergePatch<T>(Map<String, Value>, PhantomData<fn() -> T>);

impl<'de, T> Deserialize<'de> for MergePatch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(|fields| Self(fields, PhantomData))
    }
}

impl<T: Serialize + DeserializeOwned> MergePatch<T> {
    pub fn apply_to(&self, current: &T) -> Result<T, Problem> {
        let mut merged = serde_json::to_value(current).map_err(Problem::internal)?;
        if let Value::Object(settings) = &mut merged {
            for (name, value) in &self.0 {
                match value {
                    Value::Null => drop(settings.remove(name)),
                    value => drop(settings.insert(name.clone(), value.clone())),
                }
            }
        }
        json::read(merged)
    }
}

impl<T: ToSchema + ComposeSchema> ToSchema for MergePatch<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Patch", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
    }
}

impl<T: ComposeSchema> ComposeSchema for MergePatch<T> {
    fn compose(generics: Vec<RefOr<Schema>>) -> RefOr<Schema> {
        let mut schema = T::compose(generics);
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            let required = std::mem::take(&mut object.required);
            for (name, property) in &mut object.properties {
                if !required.contains(name) {
                    make_nullable(property);
                }
            }
            let about = "The fields to change. All others stay; `null` clears a field.";
            object.description = Some(about.to_owned());
            object.examples.clear();
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
        schema
    }
}

fn make_nullable(property: &mut RefOr<Schema>) {
    match property {
        RefOr::T(Schema::Object(Object { schema_type: SchemaType::Type(one), default, .. })) => {
            let types = vec![one.clone(), Type::Null];
            *default = None;
            if let RefOr::T(Schema::Object(object)) = property {
                object.schema_type = SchemaType::Array(types);
            }
        }
        RefOr::T(Schema::Object(Object { schema_type: SchemaType::Array(types), .. })) => {
            if !types.contains(&Type::Null) {
                types.push(Type::Null);
            }
        }
        RefOr::T(Schema::Array(array)) => array.schema_type = SchemaType::Array(vec![Type::Array, Type::Null]),
        RefOr::Ref(_) => {
            let null = Object::with_type(Type::Null);
            let either = OneOfBuilder::new().item(null).item(property.clone()).build();
            *property = Schema::OneOf(either).into();
        }
        RefOr::T(_) => {}
    }
}
