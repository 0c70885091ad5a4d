use std::time::Duration;

use bytes::Bytes;

use super::{Ended, Provider, Script};
use crate::caller::{Answer, Caller, Outcome};
use crate::eventually::eventually;

async fn ask(provider: &Provider, stream: bool) -> anyhow::Result<Answer> {
    Caller::new(provider.address(), "sk-x")?.chat("up-m", stream).await
}

#[tokio::test]
async fn a_healthy_answer_arrives_as_it_was_recorded() {
    let provider = Provider::start("p1").await.unwrap();
    for stream in [true, false] {
        let answer = ask(&provider, stream).await.unwrap();
        assert_eq!((answer.status, answer.broke.clone()), (200, None));
        assert_eq!(answer.body(), provider.last_sent());
        let call = provider.call_of(&answer.answer_id().unwrap()).unwrap();
        assert_eq!((call.stream, call.model.as_str(), call.ended), (stream, "up-m", Some(Ended::Complete)));
    }
}

#[tokio::test]
async fn a_refusing_provider_keeps_its_port_and_listens_there_again() {
    let provider = Provider::start("p1").await.unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&provider, false).await.unwrap().status, 200);
        provider.set(Script::Refuse).await;
        let error = ask(&provider, false).await.unwrap_err();
        assert!(format!("{error:?}").contains("refused"), "{error:?}");
        provider.set(Script::Healthy).await;
    }
    assert_eq!(provider.call_count(), 3);
}

#[tokio::test]
async fn a_cut_shows_what_came_before_it_and_no_end() {
    let provider = Provider::start("p1").await.unwrap();
    for script in [Script::Cut, Script::CutByReset] {
        provider.set(script.clone()).await;
        for stream in [true, false] {
            let answer = ask(&provider, stream).await.unwrap();
            assert_eq!(answer.body(), provider.last_sent(), "{script}");
            assert!(answer.broke.is_some(), "{script}");
            assert_eq!(answer.outcome(), Outcome::Broken);
        }
    }
    assert!(provider.calls().iter().all(|call| call.ended == Some(Ended::Broken)));
}

#[tokio::test]
async fn a_reset_and_a_hang_come_before_the_headers() {
    let provider = Provider::start("p1").await.unwrap();
    provider.set(Script::Reset).await;
    assert!(ask(&provider, true).await.is_err());
    provider.set(Script::Hang).await;
    let mut asking = Box::pin(ask(&provider, true));
    let arrived = eventually("the call arrives", Duration::from_secs(5), || async {
        anyhow::ensure!(provider.call_count() == 2);
        Ok(())
    });
    tokio::select! {
        answer = &mut asking => panic!("answered: {}", answer.is_ok()),
        arrived = arrived => arrived.unwrap(),
    }
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut asking).await.is_err());
    drop(asking);
    eventually("the provider notices that the caller is gone", Duration::from_secs(5), || async {
        let ended = provider.calls().last().and_then(|call| call.ended);
        anyhow::ensure!(ended == Some(Ended::Dropped), "{ended:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_looks_like_success_is_not() {
    let provider = Provider::start("p1").await.unwrap();
    provider.set(Script::ErrorAfterRole).await;
    let text = ask(&provider, true).await.unwrap().text();
    assert!(text.contains("\"role\"") && text.contains("\"error\""), "{text}");
    provider.set(Script::Html).await;
    assert!(ask(&provider, true).await.unwrap().text().starts_with("<html>"));
    provider.set(Script::Empty).await;
    assert_eq!(ask(&provider, true).await.unwrap().body(), b"");
    let chunks = vec![Bytes::from_static(b"data: a"), Bytes::from_static(b"b\n\n")];
    provider.set(Script::Raw { content_type: "text/event-stream", chunks }).await;
    let answer = ask(&provider, true).await.unwrap();
    assert_eq!((answer.reads.len(), answer.text().as_str()), (2, "data: ab\n\n"));
}

#[tokio::test]
async fn a_script_for_one_model_leaves_the_others_alone() {
    let provider = Provider::start("p1").await.unwrap();
    provider.set_for("up-m", Script::RateLimited(Some(7)));
    let caller = Caller::new(provider.address(), "").unwrap();
    let limited = caller.chat("up-m", false).await.unwrap();
    assert_eq!((limited.status, limited.header("retry-after")), (429, "7"));
    assert_eq!(caller.chat("up-n", false).await.unwrap().status, 200);
}
