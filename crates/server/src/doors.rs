//! The only way to add a route. A door is opened with a policy or not at all, and each one is written down, so that a
//! test can walk them (invariant 15).

use crate::{
    App,
    auth::{guard, origin},
    error::{Code, Problem},
    observe::observe,
    openapi,
};
use axum::{
    Router, extract::DefaultBodyLimit, handler::Handler, http::Method, middleware::from_fn_with_state,
    routing::MethodRouter,
};
use std::sync::Arc;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// Who may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Anyone who may reach the server at all. Such a door shows nothing of anybody and changes nothing but who is signed
    /// in.
    Public,
    /// Someone with an account, or the local owner while there is none. Handlers get them as [`crate::auth::Caller`].
    Owner,
    /// The same, or an agent's program with the pass of its process. Handlers get either as [`crate::auth::Guest`].
    OwnerOrAgent,
}

/// What stands before a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    pub policy: Policy,
    pub body_bytes: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Door {
    pub method: Method,
    /// With its placeholders: `/api/rooms/{id}`.
    pub path: String,
    pub policy: Policy,
}

pub struct Doors {
    app: App,
    router: OpenApiRouter<App>,
    list: Vec<Door>,
}

impl Doors {
    pub fn new(app: &App) -> Self {
        Self { app: Arc::clone(app), router: OpenApiRouter::default(), list: Vec::new() }
    }

    /// Opens the operations of one path: `doors.open(Policy::Owner, routes!(list, create))`.
    pub fn open(self, policy: Policy, routes: UtoipaMethodRouter<App>) -> Self {
        let body_bytes = self.app.config.max_body_bytes;
        self.open_for(Gate { policy, body_bytes }, routes)
    }

    /// The same for a door that takes larger or smaller bodies than the others.
    pub fn open_for(mut self, gate: Gate, (schemas, paths, handlers): UtoipaMethodRouter<App>) -> Self {
        let policy = gate.policy;
        // `routes!` would put every handler it is given on every path among them.
        assert!(paths.paths.len() == 1, "open one path at a time, not {:?}", paths.paths.keys());
        for (path, item) in &paths.paths {
            let door = |(method, _)| Door { method, path: path.clone(), policy };
            self.list.extend(openapi::operations(item).map(door));
        }
        let handlers = self.guarded(gate, handlers);
        self.router = self.router.routes((schemas, paths, handlers));
        self
    }

    /// Opens a page for people, which has no place in the API's description.
    pub fn page(self, policy: Policy, path: &str, handlers: MethodRouter<App>) -> Self {
        self.beside(policy, path, &[Method::GET], handlers)
    }

    /// Opens a path with a protocol of its own, which the API's description does not tell of either.
    pub fn beside(mut self, policy: Policy, path: &str, methods: &[Method], handlers: MethodRouter<App>) -> Self {
        self.list.extend(methods.iter().map(|method| Door { method: method.clone(), path: path.to_owned(), policy }));
        let gate = Gate { policy, body_bytes: self.app.config.max_body_bytes };
        let handlers = self.guarded(gate, handlers);
        self.router = self.router.route(path, handlers);
        self
    }

    fn guarded(&self, gate: Gate, handlers: MethodRouter<App>) -> MethodRouter<App> {
        handlers.layer(from_fn_with_state((Arc::clone(&self.app), gate), guard))
    }

    pub fn into_router(self) -> (Router, Vec<Door>) {
        let Self { app, router, list } = self;
        let (router, api) = router.split_for_parts();
        app.openapi.get_or_init(|| openapi::document(api, &list));
        let gate = Gate { policy: Policy::Public, body_bytes: app.config.max_body_bytes };
        let anyone = || from_fn_with_state((Arc::clone(&app), gate), guard);
        let router = router
            .fallback(nowhere.layer(anyone()))
            .method_not_allowed_fallback(wrong_method.layer(anyone()))
            .layer(DefaultBodyLimit::max(app.config.max_body_bytes))
            .layer(from_fn_with_state(Arc::clone(&app), origin::check))
            .layer(from_fn_with_state(Arc::clone(&app), observe))
            .with_state(app);
        (router, list)
    }
}

async fn nowhere() -> Problem {
    Problem::new(Code::NotFound, "There is nothing at this path; /docs shows what there is.")
}

async fn wrong_method(method: Method) -> Problem {
    Problem::new(
        Code::MethodNotAllowed,
        format!("This path does not take {method}; the Allow header says what it takes."),
    )
}
