//! The OpenAPI schema of an event: a union of one schema per event type, distinguished by `type`.
//!
//! Built here because the JSON of an event is not derived either ([`Event::write_json`]). The tests of `crates/app` check
//! an event of every type against the published document.

use super::{Event, EventType};
use crate::time::Timestamp;
use std::borrow::Cow;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        AllOfBuilder, Discriminator, KnownFormat, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, SchemaFormat, Type,
        schema::SchemaType,
    },
};

const ABOUT: &str = "One entry of a room's journal; `type` says what `data` contains. Fields and event types may be added: \
                     ignore a field that you do not know, and skip an event whose type you do not know, but count its `seq`.";

/// The fields that all event types have.
const ENVELOPE: &str = "EventEnvelope";

type NamedSchemas = Vec<(String, RefOr<Schema>)>;

impl PartialSchema for Event {
    fn schema() -> RefOr<Schema> {
        let names = || EventType::ALL.iter().map(|kind| (kind.as_str(), Ref::from_schema_name(event_name(*kind))));
        let mapping = names().map(|(kind, event)| (kind, event.ref_location));
        let mut union = OneOfBuilder::new().description(Some(ABOUT));
        for (_, event) in names() {
            union = union.item(event);
        }
        union.discriminator(Some(Discriminator::with_mapping("type", mapping))).into()
    }
}

impl ToSchema for Event {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Event")
    }

    fn schemas(schemas: &mut NamedSchemas) {
        schemas.push((Timestamp::name().into_owned(), Timestamp::schema()));
        schemas.push((ENVELOPE.to_owned(), envelope()));
        for &kind in EventType::ALL {
            let data = kind.data_schema(schemas);
            schemas.push((data_name(kind), data));
            schemas.push((event_name(kind), event(kind)));
        }
    }
}

fn event_name(kind: EventType) -> String {
    format!("{}Event", kind.schema_name())
}

fn data_name(kind: EventType) -> String {
    format!("{}Data", kind.schema_name())
}

fn event(kind: EventType) -> RefOr<Schema> {
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind.as_str()]));
    let own = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("type", name)
        .required("type")
        .property("data", Ref::from_schema_name(data_name(kind)))
        .required("data");
    AllOfBuilder::new().item(Ref::from_schema_name(ENVELOPE)).item(own).into()
}

fn envelope() -> RefOr<Schema> {
    let id =
        || ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    let optional_id = || id().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
    let seq = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(1))
        .description(Some("1, 2, 3 … without gaps."));
    let raw = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some("The provider's original data; only with `raw=true`."));
    ObjectBuilder::new()
        .description(Some("The fields of every event."))
        .schema_type(Type::Object)
        .property("id", id())
        .required("id")
        .property("room_id", id())
        .required("room_id")
        .property("seq", seq)
        .required("seq")
        .property("run_id", optional_id())
        .required("run_id")
        .property("agent_id", optional_id())
        .required("agent_id")
        .property("created_at", Ref::from_schema_name(Timestamp::name()))
        .required("created_at")
        .property("raw", raw)
        .into()
}
