//! A socket whose writes fail once the other side has taken nothing for a while. A reader that never reads would
//! otherwise hold its connection, and what is buffered for it, for ever (invariant 10).

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

pub(super) struct Guarded<P> {
    stream: TcpStream,
    stall: Duration,
    /// There only while a write is waiting: an idle connection pays nothing for it.
    waiting: Option<Pin<Box<Sleep>>>,
    _place: P,
}

impl<P: Unpin> Guarded<P> {
    /// `place` is dropped with the socket.
    pub(super) fn new(stream: TcpStream, stall: Duration, place: P) -> Self {
        Self { stream, stall, waiting: None, _place: place }
    }

    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.stall)));
        match waiting.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader takes nothing"))),
        }
    }
}

impl<P: Unpin> AsyncRead for Guarded<P> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<P: Unpin> AsyncWrite for Guarded<P> {
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

    // Neither waits on a TCP socket, so neither says anything about progress.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::Guarded;
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

    async fn pair() -> (Guarded<()>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reader = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Guarded::new(listener.accept().await.unwrap().0, STALL, ()), reader)
    }

    // Time is paused: it moves on only when nothing else can, that is, once the socket is full.
    #[tokio::test(start_paused = true)]
    async fn invariant_10_a_write_fails_after_the_time_without_progress() {
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
    async fn any_progress_starts_the_time_anew() {
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
