//! Tickets for URLs.

use crate::{
    App,
    auth::{Caller, tickets::TICKET_LIFETIME},
    error::Problem,
};
use axum::{Json, extract::State, http::StatusCode};
use domain::time::Timestamp;
use serde::Serialize;

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Ticket)]
pub struct TicketView {
    /// For `?ticket=`. It is not shown again.
    ticket: String,
    expires_at: Timestamp,
}

/// Create a ticket
///
/// A secret for the URL of `GET /api/execute/agent/{id}`: it starts one run, within 60 seconds, on this server, with your
/// access. The same URL then continues that run, for a day after it was last used.
#[utoipa::path(post, path = "/api/tickets", tag = "session", responses((status = 201, body = TicketView)))]
pub async fn create(State(app): State<App>, caller: Caller) -> Result<(StatusCode, Json<TicketView>), Problem> {
    let ticket = app.tickets.create(&caller).map_err(Problem::internal)?;
    let expires_at = Timestamp::now() + TICKET_LIFETIME;
    Ok((StatusCode::CREATED, Json(TicketView { ticket: ticket.reveal().to_owned(), expires_at })))
}
