//! A console as a stream of bytes: what was printed last, what is printed next, and what is typed.

use bytes::Bytes;
use fairway_machines_qemu::Console;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

/// How much of what was printed before is shown: some screens.
const SHOWN: usize = 8 << 10;
/// Bytes that wait for whoever is slow.
const BUFFER: usize = 64 << 10;

/// Opens a console. Whoever typed before is relieved: their stream ends.
pub(super) fn open(console: &Console) -> DuplexStream {
    let (near, far) = tokio::io::duplex(BUFFER);
    tokio::spawn(serve(console.clone(), far));
    near
}

async fn serve(console: Console, stream: DuplexStream) {
    let mut reader = console.reader();
    let Some(writer) = console.writer(true) else {
        return;
    };
    // The console ends with its machine, whoever looks.
    drop(console);
    let (mut typed, mut shown) = tokio::io::split(stream);
    let start = reader.scrollback.len().saturating_sub(SHOWN);
    let before = std::mem::take(&mut reader.scrollback);
    if shown.write_all(&before[start..]).await.is_err() {
        return;
    }
    let mut buffer = vec![0; 4096];
    loop {
        tokio::select! {
            () = writer.relieved() => return,
            piece = reader.next() => match piece {
                Some(piece) => {
                    let written = tokio::select! {
                        // One that does not read must not stay when relieved.
                        () = writer.relieved() => return,
                        written = shown.write_all(&piece) => written,
                    };
                    if written.is_err() {
                        return;
                    }
                }
                None => return,
            },
            count = typed.read(&mut buffer) => match count {
                Ok(count) if count > 0 => {
                    if !writer.write(Bytes::copy_from_slice(&buffer[..count])).await {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use fairway_machines_qemu::names;
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn the_last_to_come_types() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(names::LIVE)).unwrap();
        let listener = UnixListener::bind(directory.path().join(names::SERIAL)).unwrap();
        let console = Console::open(directory.path()).unwrap();
        let (mut guest, _) = listener.accept().await.unwrap();
        guest.write_all(b"login: ").await.unwrap();
        let mut first = open(&console);
        let mut heard = [0; 7];
        first.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"login: ");
        first.write_all(b"one").await.unwrap();
        let mut typed = [0; 3];
        guest.read_exact(&mut typed).await.unwrap();
        assert_eq!(&typed, b"one");

        let mut second = open(&console);
        second.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"login: ", "who comes later sees what was printed");
        let mut rest = Vec::new();
        first.read_to_end(&mut rest).await.unwrap();
        second.write_all(b"two").await.unwrap();
        guest.read_exact(&mut typed).await.unwrap();
        assert_eq!(&typed, b"two");

        drop(console);
        second.read_to_end(&mut rest).await.unwrap();
    }
}
