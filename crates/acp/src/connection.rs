//! The connection to the editor: one handler for each request. The connection waits for a handler before it reads on, so
//! a handler only passes the request to a task or to its session.

use std::io;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest,
    DeleteSessionResponse, ForkSessionRequest, InitializeRequest, ListSessionsRequest, LoadSessionRequest,
    NewSessionRequest, PromptRequest, ResumeSessionRequest, SessionId, SetSessionConfigOptionRequest,
    SetSessionModeRequest,
};
use agent_client_protocol::v1::{Builder, Responder};
use agent_client_protocol::{
    Agent, Client, Error, HandleDispatchFrom, JsonRpcResponse, Lines, on_receive_notification,
    on_receive_request,
};
use futures::{Sink, Stream};
use tokio_util::sync::CancellationToken;
use whimbrel::Environment;

use crate::capabilities::{ClientFeatures, initialize_response};
use crate::errors::invalid_params;
use crate::outbox::Backlog;
use crate::server::Server;
use crate::session::SessionEvent;
use crate::stdio::{read_lines, write_lines};
use crate::steering::SteeringRequest;

/// Time in which the last lines have to be written.
const LAST_LINES_TIMEOUT: Duration = Duration::from_millis(200);

/// Serves an editor over stdin and stdout until the input ends or `stop` fires; then every session ends. Nothing else may
/// write to stdout. Must be called inside a tokio runtime with timers and I/O.
pub async fn serve_stdio(environment: Environment, stop: CancellationToken) -> io::Result<()> {
    let backlog = Backlog::default();
    let incoming = read_lines(io::stdin(), stop.clone())?;
    let (outgoing, written) = write_lines(io::stdout(), backlog.clone(), stop)?;
    let server = Server::new(&environment, backlog);
    let served = serve(server.clone(), outgoing, incoming).await;
    server.end_all().await;
    // The last lines. An editor that does not read them is not waited for.
    let _ = tokio::time::timeout(LAST_LINES_TIMEOUT, written).await;
    served.map_err(|error| io::Error::other(error.message))
}

async fn serve(
    server: Server,
    outgoing: impl Sink<String, Error = io::Error> + Send + 'static,
    incoming: impl Stream<Item = io::Result<String>> + Send + 'static,
) -> Result<(), Error> {
    let builder = with_greeting(Agent.v1().name("whimbrel"), server.clone());
    let builder = with_opening_requests(builder, &server);
    let builder = with_list_requests(builder, &server);
    with_turn_requests(builder, &server).connect_to(Lines::new(outgoing, incoming)).await
}

/// Requests that are answered at once.
fn with_greeting(
    builder: Builder<Agent, impl HandleDispatchFrom<Client>>,
    server: Server,
) -> Builder<Agent, impl HandleDispatchFrom<Client>> {
    builder
        .on_receive_request(
            async move |request: InitializeRequest, responder, _connection| {
                server.set_features(ClientFeatures::from_capabilities(&request.client_capabilities));
                responder.respond(initialize_response())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: AuthenticateRequest, responder, _connection| {
                let text =
                    format!("there is no authentication method {}: set ANTHROPIC_API_KEY", request.method_id);
                responder.respond_with_error(invalid_params(text))
            },
            on_receive_request!(),
        )
}

/// Requests that open a session.
fn with_opening_requests(
    builder: Builder<Agent, impl HandleDispatchFrom<Client>>,
    server: &Server,
) -> Builder<Agent, impl HandleDispatchFrom<Client>> {
    let [new, load, resume, fork] = [(); 4].map(|()| server.clone());
    builder
        .on_receive_request(
            async move |request: NewSessionRequest, responder, connection| {
                let server = new.clone();
                tokio::spawn(async move { server.new_session(request, responder, connection).await });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, connection| {
                let server = load.clone();
                tokio::spawn(async move { server.load_session(request, responder, connection).await });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, connection| {
                let server = resume.clone();
                tokio::spawn(async move { server.resume_session(request, responder, connection).await });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ForkSessionRequest, responder, connection| {
                let server = fork.clone();
                tokio::spawn(async move { server.fork_session(request, responder, connection).await });
                Ok(())
            },
            on_receive_request!(),
        )
}

/// Requests about stored sessions, and those that end one.
fn with_list_requests(
    builder: Builder<Agent, impl HandleDispatchFrom<Client>>,
    server: &Server,
) -> Builder<Agent, impl HandleDispatchFrom<Client>> {
    let [list, close, delete] = [(); 3].map(|()| server.clone());
    builder
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, _connection| {
                let server = list.clone();
                answer_later(responder, async move { server.list_sessions(request).await });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _connection| {
                let server = close.clone();
                answer_later(responder, async move {
                    server.close_session(&request.session_id.0).await.map(|()| CloseSessionResponse::new())
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: DeleteSessionRequest, responder, _connection| {
                let server = delete.clone();
                answer_later(responder, async move {
                    server.delete_session(&request.session_id.0).await.map(|()| DeleteSessionResponse::new())
                });
                Ok(())
            },
            on_receive_request!(),
        )
}

/// Requests of an open session.
fn with_turn_requests(
    builder: Builder<Agent, impl HandleDispatchFrom<Client>>,
    server: &Server,
) -> Builder<Agent, impl HandleDispatchFrom<Client>> {
    let [prompt, cancel, mode, option, steering] = [(); 5].map(|()| server.clone());
    builder
        .on_receive_request(
            async move |request: PromptRequest, responder, _connection| {
                post(&prompt, &request.session_id, responder, |responder| {
                    SessionEvent::Prompt(request.prompt, responder)
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _connection| {
                // Without such a session there is nothing to cancel.
                if let Ok(session) = cancel.find(&notification.session_id.0) {
                    session.post(SessionEvent::Cancel);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, _connection| {
                post(&mode, &request.session_id, responder, |responder| {
                    SessionEvent::SetMode(request.mode_id.0.to_string(), responder)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest, responder, _connection| {
                let session = request.session_id.clone();
                post(&option, &session, responder, |responder| SessionEvent::SetOption(request, responder))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SteeringRequest, responder, _connection| {
                post(&steering, &request.session_id, responder, |responder| {
                    SessionEvent::Steer(request.prompt, responder)
                })
            },
            on_receive_request!(),
        )
}

/// Passes a request to its session, or answers that there is none.
fn post<T: JsonRpcResponse>(
    server: &Server,
    session: &SessionId,
    responder: Responder<T>,
    to_event: impl FnOnce(Responder<T>) -> SessionEvent,
) -> Result<(), Error> {
    match server.find(&session.0) {
        Ok(handle) => {
            handle.post(to_event(responder));
            Ok(())
        }
        Err(error) => responder.respond_with_error(error),
    }
}

/// Answers a request in a task of its own.
fn answer_later<T: JsonRpcResponse>(
    responder: Responder<T>,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) {
    tokio::spawn(async move {
        // An editor that is gone needs no answer.
        let _ = responder.respond_with_result(work.await);
    });
}
