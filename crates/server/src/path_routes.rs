//! The operations of one path: handlers at once, descriptions when somebody requests the OpenAPI document. Describing all
//! operations at every start would cost a fifth of the memory at rest (29.4 MB instead of 22.8).

use crate::App;
use axum::{
    handler::Handler,
    http::Method,
    routing::{MethodFilter, MethodRouter},
};
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path,
    openapi::{HttpMethod, OpenApi},
};

/// Adds the descriptions of some operations, with the schemas that they refer to.
pub type DescribeOperation = fn(&mut OpenApi);

#[derive(Default)]
pub struct PathRoutes {
    pub(crate) path: String,
    pub(crate) methods: Vec<Method>,
    pub(crate) handlers: MethodRouter<App>,
    pub(crate) descriptions: Vec<DescribeOperation>,
}

impl PathRoutes {
    /// `P` is the type that `#[utoipa::path]` generates for the handler; [`routes!`](crate::routes) names it.
    pub fn with<P, H, T>(mut self, handler: H) -> Self
    where
        P: Path + Tags<'static> + SchemaReferences,
        H: Handler<T, App>,
        T: 'static,
    {
        let path = P::path();
        assert!(self.methods.is_empty() || self.path == path, "add one path at a time, not {path} and {}", self.path);
        self.path = path;
        for (method, filter) in P::methods().iter().map(axum_method) {
            self.methods.push(method);
            self.handlers = self.handlers.on(filter, handler.clone());
        }
        self.descriptions.push(describe::<P>);
        self
    }
}

/// The operations of one path: `routes!(list, create)`, or with the module of the handlers, `routes!(rooms::list)`.
#[macro_export]
macro_rules! routes {
    ($($first:ident $(:: $second:ident)?),+ $(,)?) => {
        $crate::path_routes::PathRoutes::default()$(.with::<$crate::routes!(@path $first $(:: $second)?), _, _>($first $(:: $second)?))+
    };
    (@path $handler:ident) => { $crate::pastey::paste!([<__path_ $handler>]) };
    (@path $module:ident :: $handler:ident) => { $crate::pastey::paste!($module::[<__path_ $handler>]) };
}

fn describe<P: Path + Tags<'static> + SchemaReferences>(api: &mut OpenApi) {
    let mut operation = P::operation();
    let tags = P::tags();
    if !tags.is_empty() {
        operation.tags.get_or_insert_default().extend(tags.iter().map(ToString::to_string));
    }
    api.paths.add_path_operation(P::path(), P::methods(), operation);
    let mut schemas = Vec::new();
    P::schemas(&mut schemas);
    api.components.get_or_insert_default().schemas.extend(schemas);
}

fn axum_method(method: &HttpMethod) -> (Method, MethodFilter) {
    match method {
        HttpMethod::Get => (Method::GET, MethodFilter::GET),
        HttpMethod::Post => (Method::POST, MethodFilter::POST),
        HttpMethod::Put => (Method::PUT, MethodFilter::PUT),
        HttpMethod::Delete => (Method::DELETE, MethodFilter::DELETE),
        HttpMethod::Options => (Method::OPTIONS, MethodFilter::OPTIONS),
        HttpMethod::Head => (Method::HEAD, MethodFilter::HEAD),
        HttpMethod::Patch => (Method::PATCH, MethodFilter::PATCH),
        HttpMethod::Trace => (Method::TRACE, MethodFilter::TRACE),
    }
}
