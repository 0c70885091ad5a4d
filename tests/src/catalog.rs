//! Catalog documents for tests: channels that lead to providers, models with their chains.

use std::fmt::Write as _;

use crate::provider::Provider;

/// The environment variable that holds the upstream credential on test nodes.
pub const CREDENTIAL_ENV: &str = "TEST_UPSTREAM_KEY";
/// Its value, to be looked for where it must not be.
pub const CREDENTIAL: &str = "sk-upstream-credential-7f3a";
/// The names of providers that have a credential of their own: `p1` in `TEST_UPSTREAM_KEY_P1`. What
/// others show is [`CREDENTIAL`], and shared.
pub const OWN_CREDENTIALS: [&str; 4] = ["p1", "p2", "p3", "p4"];

/// Variable and value of the credential of a channel.
pub fn credential(channel: &str) -> (String, String) {
    if OWN_CREDENTIALS.contains(&channel) {
        (format!("{CREDENTIAL_ENV}_{}", channel.to_uppercase()), format!("{CREDENTIAL}-{channel}"))
    } else {
        (CREDENTIAL_ENV.to_owned(), CREDENTIAL.to_owned())
    }
}

/// Writes a catalog.
#[derive(Debug, Clone)]
pub struct Document {
    dialect: String,
    policy: String,
    channels: String,
    models: String,
}

impl Default for Document {
    fn default() -> Self {
        Document::new()
    }
}

impl Document {
    /// Nothing yet; its channels will speak `openai-chat`.
    pub fn new() -> Self {
        Document::of("openai-chat")
    }

    /// Nothing yet; its channels will speak this dialect, or several with commas between them.
    pub fn of(dialect: &str) -> Self {
        Document {
            dialect: dialect.to_owned(),
            policy: String::new(),
            channels: String::new(),
            models: String::new(),
        }
    }

    /// Lines of the `[policy]` table.
    pub fn policy(mut self, lines: &str) -> Self {
        let _ = writeln!(self.policy, "{lines}");
        self
    }

    /// A channel to a provider, under the provider's name.
    pub fn provider(self, provider: &Provider) -> Self {
        self.channel(provider.name(), &provider.url(), "")
    }

    /// A channel with further lines.
    pub fn channel(mut self, id: &str, base_url: &str, lines: &str) -> Self {
        let _ = writeln!(
            self.channels,
            "[channels.{id}]\ndialects = [{}]\nbase_url = \"{base_url}\"\n\
             credential = \"env:{}\"\n{lines}\n",
            self.dialect.split(',').map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "),
            credential(id).0,
        );
        self
    }

    /// A model whose chain is these channels in this order; the upstream's name is `up-MODEL`.
    pub fn model(self, name: &str, channels: &[&str]) -> Self {
        let routes: Vec<_> = channels.iter().map(|channel| (*channel, "")).collect();
        self.routes(name, &routes)
    }

    /// The same with a further member of each route, such as `context_window = 512`.
    pub fn routes(mut self, name: &str, routes: &[(&str, &str)]) -> Self {
        let _ = writeln!(
            self.models,
            "[models.\"{name}\"]\nprice = {{ input = \"9.00\", output = \"9.00\" }}\nroutes = ["
        );
        for (cost, (channel, member)) in routes.iter().enumerate() {
            let cost = cost + 1;
            let comma = if member.is_empty() { "" } else { ", " };
            let _ = writeln!(
                self.models,
                "  {{ channel = \"{channel}\", upstream_model = \"up-{name}\", \
                 cost = {{ input = \"{cost}.00\", output = \"{cost}.00\" }}{comma}{member} }},"
            );
        }
        self.models.push_str("]\n\n");
        self
    }

    /// The same with something else in the text of its channels.
    pub fn map_text(mut self, change: impl FnOnce(&str) -> String) -> Self {
        self.channels = change(&self.channels);
        self
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.policy.is_empty() {
            let _ = writeln!(text, "[policy]\n{}", self.policy);
        }
        text + &self.channels + &self.models
    }
}

/// The catalog of most tests: one model whose chain is these providers in this order.
pub fn chain_of(model: &str, providers: &[&Provider]) -> Document {
    chain_in("openai-chat", model, providers)
}

/// The same in another dialect.
pub fn chain_in(dialect: &str, model: &str, providers: &[&Provider]) -> Document {
    let names: Vec<&str> = providers.iter().map(|p| p.name()).collect();
    providers
        .iter()
        .fold(Document::of(dialect), |document, provider| document.provider(provider))
        .model(model, &names)
}
