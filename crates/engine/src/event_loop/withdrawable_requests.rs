//! Control requests of the host that it may withdraw with `control_cancel_request` before they are answered.

use tokio::sync::oneshot;

/// Requests that are being worked on, by id.
#[derive(Debug, Default)]
pub(crate) struct WithdrawableRequests(Vec<(String, oneshot::Sender<()>)>);

impl WithdrawableRequests {
    /// Registers a request. The future ends when the host withdraws it; dropping the future removes the request.
    pub(crate) fn register(&mut self, id: &str) -> impl Future<Output = ()> + Send + use<> {
        self.0.retain(|(_, sender)| !sender.is_closed());
        let (sender, receiver) = oneshot::channel();
        self.0.push((id.to_owned(), sender));
        async move {
            // If the session has ended, there is nothing to withdraw any more.
            if receiver.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Withdraws a request. An unknown or answered one is ignored.
    pub(crate) fn withdraw(&mut self, id: &str) {
        if let Some(index) = self.0.iter().position(|(known, _)| known == id) {
            let _ = self.0.swap_remove(index).1.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn only_the_named_open_request_is_withdrawn() {
        let mut requests = WithdrawableRequests::default();
        let (mut first, mut second) = (Box::pin(requests.register("r1")), Box::pin(requests.register("r2")));
        requests.withdraw("r3");
        requests.withdraw("r2");
        requests.withdraw("r2");
        assert_eq!((first.as_mut().now_or_never(), second.as_mut().now_or_never()), (None, Some(())));
        drop((first, second));
        let _third = requests.register("r3");
        assert_eq!(requests.0.len(), 1, "answered requests are removed");
        drop(requests);
    }
}
