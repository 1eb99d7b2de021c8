//! The only way to add a route. Every route has a policy, and every route is listed, so that a test can check
//! them all (invariant 15).

use crate::{
    App,
    auth::{guard, origin},
    error::{Code, Problem},
    observe::observe,
    openapi::ApiDescription,
    path_routes::{DescribeOperation, PathRoutes},
    web,
};
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    handler::Handler,
    http::{HeaderMap, Method, StatusCode, Uri},
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Redirect, Response},
    routing::MethodRouter,
};
use domain::permission::Permission;
use std::sync::Arc;

/// Who may call a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Anyone who can reach the server. Such a route shows no owner's data and changes nothing but the browser session.
    Public,
    /// A person whose role has the permission: with the local key, a token or a session.
    /// Handlers take the person as [`crate::auth::Caller`].
    Needs(Permission),
    /// For a GET that acts: the same, but a cookie is not enough, because a link sends it too. A token, the local key, or a
    /// ticket in the URL.
    NeedsBearerOrTicket(Permission),
    /// The same as [`Policy::Needs`], or an agent's program with the agent token of its process, for its host tools. Handlers take either as
    /// [`crate::auth::Requester`].
    NeedsOrHostTools(Permission),
}

impl Policy {
    /// The permission that a person needs; `None` if the route is public.
    pub fn permission(self) -> Option<Permission> {
        match self {
            Self::Public => None,
            Self::Needs(permission) | Self::NeedsBearerOrTicket(permission) | Self::NeedsOrHostTools(permission) => {
                Some(permission)
            }
        }
    }
}

/// The checks before a handler: access policy, rate limit and body size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteGuard {
    pub policy: Policy,
    pub max_body_bytes: usize,
    /// Whether requests of a public route count for the rate limit of their address.
    pub is_counted: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteInfo {
    pub method: Method,
    /// The path template, such as `/api/rooms/{id}`.
    pub path: String,
    pub policy: Policy,
}

pub struct RouterBuilder {
    app: App,
    router: Router<App>,
    routes: Vec<RouteInfo>,
    descriptions: Vec<DescribeOperation>,
}

impl RouterBuilder {
    pub fn new(app: &App) -> Self {
        Self { app: Arc::clone(app), router: Router::new(), routes: Vec::new(), descriptions: Vec::new() }
    }

    /// Adds the operations of one path: `builder.add(Policy::Needs(Permission::Read), routes!(list))`. A path with several policies is
    /// added once for each.
    pub fn add(self, policy: Policy, routes: PathRoutes) -> Self {
        let body_bytes = self.app.config.max_body_bytes;
        self.add_guarded(RouteGuard { policy, max_body_bytes: body_bytes, is_counted: true }, routes)
    }

    /// Adds the operations of a path that answer at once from memory, and must answer whatever else an address sends:
    /// a monitor and a visitor behind one proxy have the same address.
    pub fn add_health_check(self, routes: PathRoutes) -> Self {
        let body_bytes = self.app.config.max_body_bytes;
        self.add_guarded(RouteGuard { policy: Policy::Public, max_body_bytes: body_bytes, is_counted: false }, routes)
    }

    /// Adds the operations of one path with its own body limit.
    pub fn add_guarded(mut self, gate: RouteGuard, routes: PathRoutes) -> Self {
        let PathRoutes { path, methods, handlers, descriptions } = routes;
        self.descriptions.extend(descriptions);
        self.add_path(gate, &path, &methods, handlers)
    }

    /// Adds a page for people. It is not part of the OpenAPI document.
    pub fn add_page(self, policy: Policy, path: &str, handlers: MethodRouter<App>) -> Self {
        self.add_undocumented(policy, path, &[Method::GET], handlers)
    }

    /// Adds a path with its own protocol. It is not part of the OpenAPI document.
    pub fn add_undocumented(self, policy: Policy, path: &str, methods: &[Method], handlers: MethodRouter<App>) -> Self {
        let gate = RouteGuard { policy, max_body_bytes: self.app.config.max_body_bytes, is_counted: true };
        self.add_path(gate, path, methods, handlers)
    }

    fn add_path(mut self, gate: RouteGuard, path: &str, methods: &[Method], handlers: MethodRouter<App>) -> Self {
        let route = |method: &Method| RouteInfo { method: method.clone(), path: path.to_owned(), policy: gate.policy };
        self.routes.extend(methods.iter().map(route));
        let handlers = self.with_guard(gate, handlers);
        self.router = self.router.route(path, handlers);
        self
    }

    fn with_guard(&self, gate: RouteGuard, handlers: MethodRouter<App>) -> MethodRouter<App> {
        handlers.layer(from_fn_with_state((Arc::clone(&self.app), gate), guard))
    }

    /// The router, whose routes are described at `/openapi.json`, and the list of them.
    pub fn into_router(mut self) -> (Router, Vec<RouteInfo>) {
        let (descriptions, list) = (std::mem::take(&mut self.descriptions), self.routes.clone());
        self.app.openapi.get_or_init(|| ApiDescription::new(descriptions, list.clone()));
        (self.into_undescribed(), list)
    }

    /// A router beside the one of clients. `/openapi.json` knows nothing of its routes.
    pub fn into_undescribed(self) -> Router {
        let Self { app, router, .. } = self;
        let gate = RouteGuard { policy: Policy::Public, max_body_bytes: app.config.max_body_bytes, is_counted: true };
        let anyone = || from_fn_with_state((Arc::clone(&app), gate), guard);
        router
            .fallback(not_found.layer(anyone()))
            .method_not_allowed_fallback(method_not_allowed.layer(anyone()))
            .layer(DefaultBodyLimit::max(app.config.max_body_bytes))
            .layer(from_fn_with_state(Arc::clone(&app), origin::check))
            .layer(from_fn_with_state(Arc::clone(&app), observe))
            .with_state(app)
    }
}

/// A path of the API with a slash at its end is redirected, with the method and the body. A browser that was given a wrong
/// address gets the web app, which says so; every other client a problem.
async fn not_found(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    match uri.path().strip_suffix('/').filter(|path| path.starts_with("/api/") && !path.ends_with('/')) {
        Some(path) => {
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            Redirect::permanent(&format!("{path}{query}")).into_response()
        }
        None => web::unknown_page(&app, &uri, &headers).unwrap_or_else(|| {
            Problem::new(Code::NotFound, "This path does not exist; see /docs for the API.").into_response()
        }),
    }
}

/// The router adds the Allow header to both responses.
async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(
        Code::MethodNotAllowed,
        format!("This path does not support {method}; the Allow header lists the supported methods."),
    )
    .into_response()
}
