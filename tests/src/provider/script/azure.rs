//! Chat completions, as the simulated provider sends them where it is asked as Azure OpenAI is: with the filter's frame
//! in front, which has no id and no model, and the filter's results beside every piece.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, JSON, Plan, Wire, answer_id, send};

pub(super) const WIRE: Wire = Wire {
    id: "chatcmpl",
    preamble: |asked| {
        let filter = json!([{"prompt_index": 0, "content_filter_results": results()}]);
        let first = json!({"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": filter});
        let role = json!({"role": "assistant", "content": "", "refusal": null});
        format!("data: {first}\n\n") + &frame(asked, &role, &json!({}), Value::Null)
    },
    delta: |asked, text| frame(asked, &json!({"content": text}), &results(), Value::Null),
    finish: |asked| frame(asked, &json!({}), &json!({}), json!("stop")) + "data: [DONE]\n\n",
    error_frame: || {
        let error = json!({"message": "The server had an error processing your request.", "type": "server_error", "param": null, "code": null});
        format!("data: {}\n\n", json!({ "error": error }))
    },
    whole: |asked, text| {
        let message = json!({"role": "assistant", "content": text, "refusal": null, "annotations": []});
        let choice = json!({"content_filter_results": results(), "finish_reason": "stop", "index": 0, "logprobs": null, "message": message});
        let answer = json!({
            "choices": [choice], "created": 1_700_000_000, "model": "gpt-4o-2024-11-20", "object": "chat.completion",
            "id": answer_id(&asked.path, &asked.provider, asked.number), "system_fingerprint": "fp",
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": results()}],
            "usage": {"completion_tokens": 6, "prompt_tokens": 3, "total_tokens": 9},
        });
        Bytes::from(format!("{answer:#}\n"))
    },
    error_body,
};

/// The path's part behind the deployment, and the deployment, where one is asked for by a path.
pub(super) fn deployment(path: &str) -> Option<(&str, &str)> {
    path.split_once("/openai/deployments/")?.1.split_once('/')
}

/// Whether a path is one of Azure's.
pub(super) fn is_azures(path: &str) -> bool {
    deployment(path).is_some() || path.starts_with("/openai/v1/")
}

/// What is refused whatever the script is: a deployment without a version of the API is no path there.
pub(super) fn refusal(path: &str) -> Option<Plan> {
    deployment(path)?;
    let query = path.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let has_version = query.split('&').any(|pair| pair.starts_with("api-version=20"));
    (!has_version).then(|| {
        let body = json!({"error": {"code": "404", "message": "Resource not found"}}).to_string();
        Plan::Answer {
            status: 404,
            headers: vec![("content-type", JSON.to_owned())],
            steps: vec![send(body)],
        }
    })
}

fn error_body(status: u16) -> String {
    let (code, message) = match status {
        401 => ("401", "Access denied due to invalid subscription key or wrong API endpoint."),
        404 => ("DeploymentNotFound", "The API deployment for this resource does not exist."),
        429 => ("429", "Requests have exceeded call rate limit of your current pricing tier."),
        400 => {
            ("OperationNotSupported", "The chatCompletion operation does not work with the specified model.")
        }
        _ => ("InternalServerError", "The server had an error processing your request."),
    };
    json!({"error": {"code": code, "message": message}}).to_string()
}

fn results() -> Value {
    json!({"hate": {"filtered": false, "severity": "safe"}, "violence": {"filtered": false, "severity": "safe"}})
}

/// A frame with spaces in it, so that a gateway that writes it anew is noticed.
fn frame(asked: &Asked, delta: &Value, filter: &Value, finish: Value) -> String {
    let choice = json!({"content_filter_results": filter, "delta": delta, "finish_reason": finish, "index": 0, "logprobs": null});
    let id = answer_id(&asked.path, &asked.provider, asked.number);
    format!(
        "data: {{\"choices\": [{choice}],  \"created\":1700000000,\"id\":\"{id}\",\"model\":\"gpt-4o-2024-11-20\",\
         \"object\":\"chat.completion.chunk\",\"system_fingerprint\":\"fp\"}}\n\n"
    )
}
