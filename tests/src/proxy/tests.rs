use std::io::ErrorKind;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use super::*;

/// Long enough for what would come at once.
const A_MOMENT: Duration = Duration::from_millis(200);

/// A proxy, its client's end and its target's.
async fn pair() -> (Proxy, TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let proxy = Proxy::start(Target::Tcp(listener.local_addr().unwrap())).await.unwrap();
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    let (target, _) = listener.accept().await.unwrap();
    (proxy, client, target)
}

async fn heard(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut heard = vec![0; bytes];
    timeout(Duration::from_secs(5), stream.read_exact(&mut heard)).await.unwrap().unwrap();
    heard
}

#[tokio::test]
async fn a_blackhole_carries_nothing_and_what_was_said_arrives_when_it_is_lifted() {
    let (proxy, mut client, mut target) = pair().await;
    client.write_all(b"one").await.unwrap();
    assert_eq!(heard(&mut target, 3).await, b"one");
    proxy.set(Way::Blackhole);
    client.write_all(b"two").await.unwrap();
    assert!(timeout(A_MOMENT, target.read_u8()).await.is_err());
    proxy.set(Way::Open);
    assert_eq!(heard(&mut target, 3).await, b"two");
    proxy.forget();
    drop(client);
    assert!(timeout(A_MOMENT, target.read_u8()).await.is_err(), "not even an end comes through");
    assert_eq!((proxy.carried(Side::Client), proxy.carried(Side::Target)), (6, 0));
}

#[tokio::test]
async fn a_reset_is_a_reset_on_both_sides_and_a_cut_comes_after_so_many_bytes() {
    let (proxy, mut client, mut target) = pair().await;
    proxy.cut_after(Side::Target, 4);
    target.write_all(b"snapshot").await.unwrap();
    assert_eq!(heard(&mut client, 4).await, b"snap");
    for stream in [&mut client, &mut target] {
        let ended = timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap();
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(proxy.cuts(), 1);
    let (proxy, mut client, _target) = pair().await;
    proxy.reset();
    let ended = timeout(Duration::from_secs(5), client.read_u8()).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn half_of_a_connection_closes_and_the_other_half_goes_on() {
    let (proxy, mut client, mut target) = pair().await;
    proxy.half_close();
    let ended = timeout(Duration::from_secs(5), client.read_u8()).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    client.write_all(b"still here").await.unwrap();
    assert_eq!(heard(&mut target, 10).await, b"still here");
}

#[tokio::test]
async fn what_is_throttled_or_delayed_takes_its_time() {
    let (proxy, mut client, mut target) = pair().await;
    proxy.set(Way::Throttled(20));
    let since = Instant::now();
    client.write_all(b"0123456789").await.unwrap();
    assert_eq!(heard(&mut target, 10).await, b"0123456789");
    assert!(since.elapsed() >= Duration::from_millis(400), "{:?}", since.elapsed());
    proxy.set(Way::Delayed(A_MOMENT));
    let since = Instant::now();
    target.write_all(b"x").await.unwrap();
    heard(&mut client, 1).await;
    assert!(since.elapsed() >= A_MOMENT, "{:?}", since.elapsed());
}
