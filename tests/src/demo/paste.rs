//! Lines for the reader's own shell, with the addresses and the key of this run: curl, the Python SDK,
//! `sluice`.

use super::stack::Stack;

/// The lines, one command each.
pub(super) fn lines(stack: &Stack) -> String {
    let Some(node) = stack.nodes.first() else { return String::new() };
    let model = stack.models.first().map(String::as_str).unwrap_or_default();
    let (data, key, plane) = (node.addresses.data, &stack.key, stack.addresses);
    let sluice = format!(
        "SLUICE_SERVER=http://{} SLUICE_TOKEN_FILE='{}' cargo run --release --bin sluice --",
        plane.admin,
        stack.admin_token().display(),
    );
    let question = serde_json::json!({
        "model": model,
        "stream": true,
        "messages": [{"role": "user", "content": "hello"}],
    });
    format!(
        "# a streamed answer through {id}\n\
         curl -N http://{data}/v1/chat/completions -H 'authorization: Bearer {key}' \
         -H 'content-type: application/json' -d '{question}'\n\
         # the same with the official Python SDK (pip install openai)\n\
         python3 -c 'from openai import OpenAI; print(OpenAI(base_url=\"http://{data}/v1\", \
         api_key=\"{key}\").chat.completions.create(model=\"{model}\", \
         messages=[{{\"role\": \"user\", \"content\": \"hello\"}}]).choices[0].message.content)'\n\
         # what an operator sees\n\
         {sluice} status\n\
         {sluice} chain {model}\n\
         {sluice} nodes list\n\
         # the status page: http://{http}/   a node's own view: http://{ops}/debug/chains\n",
        id = node.id,
        http = plane.http,
        ops = node.addresses.ops,
    )
}

/// What is said before the view opens.
pub(super) fn greeting(stack: &Stack) -> String {
    let mut text = String::from("\n");
    text.push_str(&lines(stack));
    if let Some(cooldown) = stack.cooldown {
        text.push_str(&format!(
            "\nFor watching, the demo's catalog has a breaker cooldown of {} (usually 60s) and a headers timeout \
             of 3s (usually 240s).\n",
            humantime::format_duration(cooldown),
        ));
    }
    if stack.providers.is_empty() {
        text.push_str(
            "\nThe demo calls one of the catalog's models every ten seconds, and the upstream charges for it \
             (--no-traffic: none).\n",
        );
    }
    if stack.is_kept() {
        text.push_str(&format!("Everything is kept in {}.\n", stack.dir().display()));
    }
    text
}

/// The lines as a page of the screen. They are not cut, so that they can be copied whole.
pub(super) fn page(stack: &Stack) -> String {
    format!("Lines to paste into another terminal (?: back to the view, q: quit)\n\n{}", lines(stack))
}
