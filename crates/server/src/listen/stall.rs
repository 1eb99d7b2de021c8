//! A socket whose writes fail when the client has read nothing for a while. Otherwise a client that never reads would
//! hold its connection and its buffers indefinitely (invariant 10).

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

pub(super) struct StallTimeoutStream<P> {
    stream: TcpStream,
    stall: Duration,
    /// Set only while a write is waiting, so that an idle connection has no timer.
    waiting: Option<Pin<Box<Sleep>>>,
    _permit: P,
}

impl<P: Unpin> StallTimeoutStream<P> {
    /// `permit` is dropped with the socket.
    pub(super) fn new(stream: TcpStream, stall: Duration, permit: P) -> Self {
        Self { stream, stall, waiting: None, _permit: permit }
    }

    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.stall)));
        match waiting.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))),
        }
    }
}

impl<P: Unpin> AsyncRead for StallTimeoutStream<P> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<P: Unpin> AsyncWrite for StallTimeoutStream<P> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Neither blocks on a TCP socket, so neither is a sign of progress.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::StallTimeoutStream;
    use std::{
        io,
        task::{Context, Poll, Waker},
        time::Duration,
    };
    use tokio::{
        io::AsyncWriteExt,
        net::{TcpListener, TcpStream},
        time::Instant,
    };

    const STALL: Duration = Duration::from_secs(120);

    async fn pair() -> (StallTimeoutStream<()>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reader = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (StallTimeoutStream::new(listener.accept().await.unwrap().0, STALL, ()), reader)
    }

    // The clock is paused: it advances only when nothing else can run, that is, once the socket is full.
    #[tokio::test(start_paused = true)]
    async fn invariant_10_a_write_fails_after_the_stall_timeout() {
        let (mut writer, _reader) = pair().await;
        let started = Instant::now();
        let block = vec![0; 1 << 20];
        let error = loop {
            if let Err(error) = writer.write_all(&block).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= STALL);
    }

    #[tokio::test(start_paused = true)]
    async fn any_progress_restarts_the_stall_timeout() {
        let (mut writer, _reader) = pair().await;
        let mut context = Context::from_waker(Waker::noop());
        let mut step = |after: u64, written| {
            let outcome = writer.watch(&mut context, written);
            async move {
                tokio::time::advance(Duration::from_secs(after)).await;
                outcome
            }
        };
        assert!(step(100, Poll::Pending).await.is_pending());
        assert!(step(0, Poll::Ready(Ok(1))).await.is_ready());
        assert!(step(100, Poll::Pending).await.is_pending());
        assert!(step(21, Poll::Pending).await.is_pending());
        assert!(matches!(step(0, Poll::Pending).await, Poll::Ready(Err(_))));
    }
}
