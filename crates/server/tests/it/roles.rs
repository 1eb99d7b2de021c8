//! Every route, with every role, for own, foreign and unknown ids: the policy decides the status (invariant 15).

use crate::test_app::{TestApp, config, engine_on, member, token_of};
use axum::{
    body::{Body, to_bytes},
    http::{Method, Request, header},
};
use domain::{
    actor::Credential,
    ids::{
        AgentId, ApprovalId, BudgetId, CommandId, MemoryId, ProjectId, ProposalId, RoomId, RunId, TokenId, UploadId,
    },
    name::Name,
    permission::{Permission, Role},
    project::{Project, ProjectSettings},
    scope::Scopes,
    time::Timestamp,
};
use serde_json::{Value, json};
use server::{
    listen::ConnectionAddrs,
    routing::{Policy, RouteInfo},
};
use store::{NewToken, Store, StoreAccess};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// A server with a store that works, for as long as this value lives.
struct RoleServer {
    test_app: TestApp,
    store: Store,
    _tasks: JoinSet<()>,
    _database: TestDatabase,
}

/// One object of each kind in a workspace, or ids and names of nothing.
#[derive(Clone, Debug)]
struct Objects {
    agent: String,
    room: String,
    run: String,
    upload: String,
    skill: String,
    proposal: String,
    mcp_server: String,
    token: String,
    budget: String,
    memory: String,
    project: String,
    provider: String,
}

impl Objects {
    fn unknown() -> Self {
        Self {
            agent: AgentId::generate().to_string(),
            room: RoomId::generate().to_string(),
            run: RunId::generate().to_string(),
            upload: UploadId::generate().to_string(),
            skill: "unknown".into(),
            proposal: ProposalId::generate().to_string(),
            mcp_server: "unknown".into(),
            token: TokenId::generate().to_string(),
            budget: BudgetId::generate().to_string(),
            memory: MemoryId::generate().to_string(),
            project: ProjectId::generate().to_string(),
            provider: "unknown".into(),
        }
    }

    /// The path of a route with the ids of these objects.
    fn path(&self, template: &str, deletes: bool) -> String {
        let id = match template.split('/').nth(2) {
            Some("agents" | "execute") => &self.agent,
            Some("rooms" | "chat" | "threads") => &self.room,
            Some("runs" | "agent-runs") => &self.run,
            Some("uploads") => &self.upload,
            Some("tokens") => &self.token,
            Some("budgets") => &self.budget,
            Some("projects") => &self.project,
            Some("providers") => &self.provider,
            Some("skills") => &self.proposal,
            Some("strapi") if template.starts_with("/api/strapi/skills") => &self.skill,
            _ => &self.agent,
        };
        let name = if template.starts_with("/api/skills") { &self.skill } else { &self.mcp_server };
        let path = template
            .replace("{id}", id)
            .replace("{name}", name)
            .replace("{agent}", &self.agent)
            .replace("{stream}", &self.run)
            .replace("{approval}", &ApprovalId::generate().to_string())
            .replace("{port}", "8000")
            .replace("{command}", &CommandId::generate().to_string())
            .replace("{memory_id}", &self.memory)
            .replace("{version}", "1")
            .replace("{path}", "notes.md");
        match template {
            "/api/uploads" => format!("{path}?name=notes.txt"),
            "/api/rooms/{id}/remembered/{agent}" => format!("{path}?tool=Bash"),
            "/api/projects/{id}/files" if deletes => format!("{path}?path=notes.md"),
            "/api/projects/{id}/files/content" => format!("{path}?path=notes.md"),
            _ => path,
        }
    }
}

struct Answer {
    status: u16,
    /// The body of a problem; streams are not read.
    problem: Value,
}

impl RoleServer {
    async fn start(database: TestDatabase) -> Self {
        let (settings, mut tasks) = (database.config(), JoinSet::new());
        let store = Store::open(&settings, StoreAccess::Server, &mut tasks, &CancellationToken::new()).await.unwrap();
        let test_app = TestApp::with_engine(config(), engine_on(store.clone(), database.folder()));
        test_app.accounts.exist.store(true, std::sync::atomic::Ordering::SeqCst);
        Self { test_app, store, _tasks: tasks, _database: database }
    }

    async fn send(&self, token: &str, method: &Method, path: &str, body: Option<Value>) -> Answer {
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(header::HOST, "127.0.0.1:7878")
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        let (kind, body) = match body {
            Some(Value::String(parts)) if parts.starts_with("--x") => ("multipart/form-data; boundary=x", parts.into()),
            Some(body) => ("application/json", Body::from(body.to_string())),
            None => ("application/json", Body::empty()),
        };
        let request = request.header(header::CONTENT_TYPE, kind);
        let mut request = request.body(body).unwrap();
        let local = ([127, 0, 0, 1], 7878).into();
        request.extensions_mut().insert(ConnectionAddrs { remote: ([127, 0, 0, 1], 5000).into(), local });
        let response = self.test_app.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.to_str().unwrap().starts_with("application/") && kind.to_str().unwrap().ends_with("json")
        });
        let mut problem = match is_json {
            true => serde_json::from_slice(&to_bytes(response.into_body(), 1 << 20).await.unwrap()).unwrap(),
            false => Value::Null,
        };
        if status >= 400
            && let Some(problem) = problem.as_object_mut()
        {
            // It names the request, which differs.
            problem.remove("instance");
        }
        Answer { status, problem }
    }

    /// The tokens of these requests are not in the store, so one that is does not come from them.
    async fn create_token(&self, workspace: &str) -> String {
        let token = NewToken {
            label: Name::parse("a token").unwrap(),
            hash: server::auth::token::hash(RoomId::generate().to_string().as_bytes()),
            scopes: Scopes::ALL,
            expires_at: None,
        };
        let creator = member(workspace, Role::Owner, Credential::LocalKey);
        self.store.add_token(&creator, &token, None).await.unwrap().0.to_string()
    }

    /// Needs no sandbox, unlike the route.
    async fn create_project(&self, workspace: &str) -> String {
        let now = Timestamp::default();
        let project = Project {
            id: ProjectId::generate(),
            name: Name::parse("a project").unwrap(),
            folder: None,
            settings: ProjectSettings::default(),
            created_at: now,
            updated_at: now,
        };
        let creator = member(workspace, Role::Owner, Credential::LocalKey);
        self.store.create_project(&creator, &project, usize::MAX, None).await.unwrap();
        project.id.to_string()
    }

    async fn create_memory(&self, workspace: &str, agent: &str) -> String {
        let (creator, agent) = (member(workspace, Role::Owner, Credential::LocalKey), agent.parse().unwrap());
        assert!(self.store.save_memory(&creator, agent, "likes tea").await.unwrap());
        self.store.memories(&creator.workspace, agent).await.unwrap()[0].id.to_string()
    }

    /// Creates one object of each kind.
    async fn create(&self, workspace: &str) -> Objects {
        let token = token_of(workspace, Role::Owner);
        let unique = RoomId::generate().to_string();
        let create = async |path: &str, body: Value| {
            let answer = self.send(&token, &Method::POST, path, Some(body)).await;
            assert!(matches!(answer.status, 200..=202), "{path}: {}", answer.problem);
            answer.problem
        };
        let id = |answer: &Value| answer["id"].as_str().unwrap().to_owned();
        let agent = id(&create("/api/agents", json!({"name": unique, "provider": "scripted"})).await);
        let room = id(&create("/api/rooms", json!({"name": "a room", "agents": [agent]})).await);
        let posted = create(&format!("/api/rooms/{room}/messages"), json!({"text": "hello"})).await;
        let skill = format!("s-{unique}");
        create("/api/skills", json!({"name": skill, "description": "Helps.", "body": "Do it."})).await;
        let file = format!("/api/skills/{skill}/files/notes.md");
        assert_eq!(self.send(&token, &Method::PUT, &file, Some(json!("x"))).await.status, 200);
        let proposals = format!("/api/skills/{skill}/training/proposals");
        let mcp_server = unique.clone();
        create("/api/mcp-servers", json!({"name": mcp_server, "url": "http://127.0.0.1:1/", "disabled": true})).await;
        let project = self.create_project(workspace).await;
        let file = format!("/api/projects/{project}/files/content?path=notes.md");
        let written = self.send(&token, &Method::PUT, &file, Some(json!("x"))).await;
        assert!(matches!(written.status, 200..=204), "{}", written.problem);
        Objects {
            // The server's own: this test has no providers of workspaces, `endpoints::provider_settings` has.
            provider: "scripted".into(),
            memory: self.create_memory(workspace, &agent).await,
            project,
            run: posted["runs"][0]["id"].as_str().unwrap().to_owned(),
            upload: id(&create("/api/uploads?name=a.txt", json!("content")).await),
            proposal: id(&create(&proposals, json!({"body": "Do it well."})).await),
            token: self.create_token(workspace).await,
            budget: id(&create("/api/budgets", json!({"scope": "workspace", "period": "day", "limit_usd": 1000})).await),
            agent,
            room,
            skill,
            mcp_server,
        }
    }
}

/// A body that the route accepts.
fn body(route: &RouteInfo, objects: &Objects) -> Option<Value> {
    let unique = RoomId::generate().to_string();
    Some(match (route.method.as_str(), route.path.as_str()) {
        ("POST", "/api/agents") => json!({"name": unique, "provider": "scripted"}),
        ("POST", "/api/agents/files") => {
            json!({"files": {"a/agent.toml": format!("name = \"{unique}\"\nprovider = \"scripted\"\n")}})
        }
        ("PATCH", "/api/agents/{id}") => json!({"system_prompt": "Be kind."}),
        ("POST", "/api/budgets") => json!({"scope": "workspace", "period": "total", "limit_usd": 1000}),
        ("POST", "/api/mcp-servers") => json!({"name": unique, "url": "http://127.0.0.1:1/"}),
        ("POST", "/api/providers") => json!({"id": unique, "base_url": "https://models.example.org/v1"}),
        ("PUT", "/api/providers/{id}/settings") => json!({"default_model": "m"}),
        ("POST", "/api/mcp-servers/import") => json!({"mcpServers": {}}),
        ("PATCH", "/api/mcp-servers/{name}") => json!({"disabled": true}),
        ("POST", "/api/mcp-servers/{name}/call") => json!({"tool": "t", "arguments": {}}),
        ("POST", "/api/rooms") => json!({"name": "a room"}),
        ("PATCH", "/api/rooms/{id}") => json!({"name": "another name"}),
        ("POST", "/api/rooms/{id}/mcp-trust" | "/api/rooms/{id}/skill-trust") => json!({"digest": "00"}),
        ("POST", "/api/rooms/{id}/fork") => json!({"message_id": unique}),
        ("POST", "/api/rooms/{id}/messages") => json!({"text": "hello"}),
        ("POST", "/api/runs/{id}/approvals/{approval}") => json!({"decision": "allow"}),
        ("POST", "/api/skills") => json!({"name": format!("s-{unique}"), "description": "Helps.", "body": "Do it."}),
        ("POST", "/api/skills/{name}/accept") => json!({"version": 1}),
        ("PATCH", "/api/skills/{name}") => json!({"description": "Helps more."}),
        ("POST", "/api/skills/{name}/training") => json!({"agent_id": objects.agent}),
        ("POST", "/api/skills/{name}/training/proposals") => json!({"body": "Do it better."}),
        ("POST", "/api/skills/{name}/training/rounds") => json!({"score": 4}),
        ("PATCH", "/api/agents/{id}/memories/{memory_id}") => json!({"text": "likes coffee"}),
        ("POST", "/api/projects") => json!({"name": "a project"}),
        ("PATCH", "/api/projects/{id}") => json!({"name": "another name"}),
        ("POST", "/api/projects/{id}/files") => {
            json!("--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"more.md\"\r\n\r\nx\r\n--x--\r\n")
        }
        ("POST", "/api/projects/{id}/commands") => json!({"command": "true"}),
        ("POST", "/api/projects/{id}/files/move") => json!({"from": "notes.md", "to": unique}),
        ("POST", "/api/rooms/{id}/tape/insert") => json!({"agent_id": objects.agent}),
        ("POST", "/api/rooms/{id}/tape/reorder") => json!({"cells": ["p1"]}),
        ("POST", "/api/tokens") => json!({"name": "another"}),
        ("POST", "/api/execute/agent/{id}" | "/api/chat/sessions/{id}/messages") => json!({"message": "hello"}),
        ("POST", "/api/strapi/agents") => json!({"name": unique}),
        ("POST", "/api/strapi/skills") => {
            json!({"name": format!("s-{unique}"), "description": "Helps.", "skillmd": "Do it."})
        }
        ("POST", "/api/threads/{id}/messages") => json!({"content": "hello"}),
        ("GET" | "DELETE", _) => return None,
        _ => json!({}),
    })
}

/// Whether a request to the route uses up its object, so that the next one needs another.
fn consumes(route: &RouteInfo) -> bool {
    route.method == Method::DELETE
        || ["/accept", "/drop", "/cancel", "/stop", "/restore", "/move"].iter().any(|end| route.path.ends_with(end))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_15_every_route_checks_the_role_and_hides_foreign_ids_sqlite() {
    check_every_route(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_15_every_route_checks_the_role_and_hides_foreign_ids_postgres() {
    check_every_route(TestDatabase::postgres()).await;
}

async fn check_every_route(database: TestDatabase) {
    let server = RoleServer::start(database).await;
    let (mut own, foreign) = (server.create("ada").await, server.create("eve").await);
    let unknown = Objects::unknown();
    let routes: Vec<RouteInfo> =
        server.test_app.routes.iter().filter(|route| !route.path.starts_with("/test/")).cloned().collect();
    let mut checked = 0;
    for route in routes.iter().filter(|route| route.policy != Policy::Public) {
        let permission = route.policy.permission().unwrap();
        for role in Role::ALL {
            let token = token_of("ada", role);
            let ask = async |objects: &Objects| {
                let path = objects.path(&route.path, route.method == Method::DELETE);
                let path = if route.path == "/api/execute/agent/{id}" && route.method == Method::GET {
                    format!("{path}?message=hello")
                } else {
                    path
                };
                server.send(&token, &route.method, &path, body(route, objects)).await
            };
            checked += 1;
            let about = format!("{} {} as {role}", route.method, route.path);
            // Nobody of this workspace is the operator.
            if !role.grants(permission) || permission == Permission::Operate {
                for objects in [&own, &foreign, &unknown] {
                    let refused = ask(objects).await;
                    assert_eq!((refused.status, &refused.problem["code"]), (403, &json!("forbidden")), "{about}");
                }
                continue;
            }
            let answer = ask(&own).await;
            // Nothing answers at the provider's address.
            let is_unreachable = route.path == "/api/providers/{id}/models" && answer.status == 502;
            assert!(
                is_unreachable || !matches!(answer.status, 401 | 403 | 500..),
                "{about}: {} {}",
                answer.status,
                answer.problem
            );
            if route.path.contains('{') {
                // There is no approval to answer and no command, and no run has started.
                let is_of_server = route.path.starts_with("/api/providers/");
                let is_empty = ["{approval}", "{command}"].iter().any(|part| route.path.contains(part))
                    || route.path.ends_with("/context")
                    || is_of_server;
                assert!(answer.status != 404 || is_empty, "{about}: {}", answer.problem);
                let hidden = if is_of_server { &unknown } else { &foreign };
                let (hidden, missing) = (ask(hidden).await, ask(&unknown).await);
                assert_eq!((hidden.status, missing.status), (404, 404), "{about}: {}", hidden.problem);
                assert_eq!(hidden.problem, missing.problem, "{about}");
            }
            if consumes(route) {
                own = server.create("ada").await;
            }
        }
    }
    assert!(checked > 4 * 60, "only {checked} combinations of a route and a role");
}
