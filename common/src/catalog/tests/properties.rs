//! What holds for every catalog.

use std::fmt::Write as _;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;
use crate::class::FailureClass;
use crate::limits::ROUTING_CHAIN_MAX;
use crate::profile::{Auth, Override, PROFILES, Profile};

const DIALECTS: [&str; 3] = ["openai-chat", "openai-responses", "gemini"];

#[derive(Debug, Clone)]
struct Doc {
    channels: Vec<(String, Vec<&'static str>, bool, Ways)>,
    /// (name, routes as (channel, input, output, order, enabled))
    models: Vec<(String, Vec<RouteDoc>)>,
}

/// What a channel says of its upstream.
#[derive(Debug, Clone)]
struct Ways {
    profile: Option<&'static str>,
    auth: Option<&'static str>,
    limits: Option<&'static str>,
    overrides: Vec<(u16, &'static str)>,
}

fn ways() -> impl Strategy<Value = Ways> {
    let profiles: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    let one = |names: Vec<&'static str>| prop::option::of(prop::sample::select(names));
    let rule = (400..600u16, prop::sample::select(Override::CLASSES.map(FailureClass::as_str).to_vec()));
    let named =
        (one(profiles), one(Auth::NAMED.map(|(name, _)| name).to_vec()), one(vec!["route", "channel"]));
    (named, vec(rule, 0..3)).prop_map(|((profile, auth, limits), overrides)| Ways {
        profile,
        auth,
        limits,
        overrides,
    })
}

impl Ways {
    fn keys(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let keys = [("profile", self.profile), ("auth", self.auth), ("limits", self.limits)];
        keys.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

type RouteDoc = (usize, u32, u32, Option<u32>, bool);

fn docs() -> impl Strategy<Value = Doc> {
    let channel = (subsequence(DIALECTS.to_vec(), 1..=3), prop::bool::weighted(0.8), ways());
    let channels = vec(channel, 1..7).prop_map(|channels| {
        let named = channels.into_iter().enumerate();
        named
            .map(|(i, (dialects, enabled, ways))| (format!("c{i}"), dialects, enabled, ways))
            .collect::<Vec<_>>()
    });
    channels.prop_flat_map(|channels| {
        let route = (0..4u32, 0..4u32, prop::option::weighted(0.2, 0..4u32), prop::bool::weighted(0.8));
        let routes = btree_map(0..channels.len(), route, 1..7);
        let routes = routes.prop_map(|routes| {
            routes
                .into_iter()
                .map(|(c, (input, output, order, on))| (c, input, output, order, on))
                .collect::<Vec<_>>()
        });
        vec(routes, 1..4).prop_map(move |models| Doc {
            channels: channels.clone(),
            models: models.into_iter().enumerate().map(|(i, routes)| (format!("m.{i}"), routes)).collect(),
        })
    })
}

impl Doc {
    fn shuffled(&self, seed: u64) -> Doc {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut doc = self.clone();
        // Routes name channels by index, so those stay; their order in the text is turned by `toml`.
        rng.shuffle(&mut doc.models);
        doc.models.iter_mut().for_each(|(_, routes)| rng.shuffle(routes));
        doc.channels.iter_mut().for_each(|(_, dialects, ..)| rng.shuffle(dialects));
        doc
    }

    fn toml(&self, channels_last: bool) -> String {
        let (mut channels, mut models) = (String::new(), String::new());
        for (id, dialects, enabled, ways) in &self.channels {
            let _ = writeln!(channels, "[channels.{id}] # {id}\nbase_url = \"https://{id}.example\"");
            let _ = writeln!(channels, "dialects = {dialects:?}\nenabled = {enabled}");
            for (key, value) in ways.keys() {
                let _ = writeln!(channels, "{key} = \"{value}\"");
            }
            let rules = ways.overrides.iter();
            let rules = rules.map(|(status, class)| format!("{{ status = {status}, class = \"{class}\" }}"));
            let _ = writeln!(channels, "overrides = [{}]", rules.collect::<Vec<_>>().join(", "));
        }
        for (name, routes) in &self.models {
            for (channel, input, output, order, enabled) in routes {
                let id = &self.channels[*channel].0;
                let order = order.map_or(String::new(), |order| format!("cost.order = {order}\n"));
                let _ =
                    writeln!(models, "[[models.{name:?}.routes]]\nchannel = \"{id}\"\nenabled = {enabled}");
                let _ = writeln!(models, "cost.input = {input}.0\ncost.output = \"{output}\"\n{order}");
            }
        }
        if channels_last { models + &channels } else { channels + &models }
    }

    fn json(&self) -> String {
        let channels = self.channels.iter().map(|(id, dialects, enabled, ways)| {
            let url = format!("https://{id}.example");
            let rules = ways.overrides.iter();
            let rules = rules.map(|(status, class)| serde_json::json!({ "status": status, "class": class }));
            let mut channel = serde_json::json!({
                "dialects": dialects,
                "base_url": url,
                "enabled": enabled,
                "overrides": rules.collect::<Vec<_>>(),
            });
            for (key, value) in ways.keys() {
                channel[key] = value.into();
            }
            (id.clone(), channel)
        });
        let models = self.models.iter().map(|(name, routes)| {
            let routes = routes.iter().map(|(channel, input, output, order, enabled)| {
                let mut cost = serde_json::json!({ "input": input, "output": output.to_string() });
                if let Some(order) = order {
                    cost["order"] = (*order).into();
                }
                serde_json::json!({ "channel": self.channels[*channel].0, "cost": cost, "enabled": enabled })
            });
            (name.clone(), serde_json::json!({ "routes": routes.collect::<Vec<_>>() }))
        });
        let channels: serde_json::Map<_, _> = channels.collect();
        let models: serde_json::Map<_, _> = models.collect();
        serde_json::json!({ "models": models, "channels": channels }).to_string()
    }
}

proptest! {
    #[test]
    fn a_chain_has_at_most_three_hops_cheapest_first_that_are_enabled_and_speak_the_dialect(doc in docs()) {
        let catalog = catalog(&doc.toml(false));
        for (name, entry) in catalog.models() {
            for chain in catalog.chains(name.as_str()) {
                let serving: Vec<_> = entry.routes.iter().filter(|route| {
                    let channel = catalog.channel(route.channel.as_str()).unwrap();
                    route.enabled && channel.enabled && channel.dialects.contains(&chain.dialect)
                }).collect();
                prop_assert_eq!(chain.hops.len(), serving.len().min(ROUTING_CHAIN_MAX));
                let key = |hop: &ChainHop| (hop.order, hop.channel.clone());
                prop_assert!(chain.hops.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
                let last = chain.hops.last().map(key);
                for route in serving {
                    let left_out = !chain.hops.iter().any(|hop| hop.channel == route.channel);
                    prop_assert!(!left_out || Some((Order::of(route), route.channel.clone())) > last);
                }
            }
        }
    }

    #[test]
    fn chains_and_snapshot_do_not_depend_on_the_order_of_the_document(doc in docs(), seed: u64) {
        let (one, other) = (catalog(&doc.toml(false)), catalog(&doc.shuffled(seed).toml(true)));
        for (name, _) in one.models() {
            prop_assert_eq!(one.chains(name.as_str()), other.chains(name.as_str()));
        }
        prop_assert_eq!(one.compile(7), other.compile(7));
    }

    #[test]
    fn a_snapshot_holds_exactly_the_chains(doc in docs()) {
        let catalog = catalog(&doc.toml(false));
        let snapshot = catalog.compile(1);
        prop_assert_eq!(snapshot.models.len(), catalog.models().len());
        for model in &snapshot.models {
            let mut chains = catalog.chains(&model.name);
            chains.sort_by_key(|chain| chain.dialect.as_str());
            let hops = |chain: &Chain| chain.hops.iter().map(|hop| hop.channel.to_string()).collect::<Vec<_>>();
            let expected: Vec<_> = chains.iter().map(|c| (c.dialect.to_string(), hops(c))).collect();
            let routes = |chain: &pb::Chain| chain.routes.iter().map(|route| route.channel.clone()).collect::<Vec<_>>();
            let found: Vec<_> = model.chains.iter().map(|c| (c.dialect.clone(), routes(c))).collect();
            prop_assert_eq!(found, expected);
            let ids: Vec<_> = snapshot.channels.iter().map(|channel| &channel.id).collect();
            let all_known = model.chains.iter().flat_map(|c| &c.routes).all(|route| ids.contains(&&route.channel));
            prop_assert!(all_known);
        }
    }

    #[test]
    fn what_a_channel_says_itself_wins_over_its_profile(doc in docs()) {
        let snapshot = catalog(&doc.toml(false)).compile(1);
        for channel in &snapshot.channels {
            let (.., ways) = doc.channels.iter().find(|(id, ..)| *id == channel.id).unwrap();
            let profile = ways.profile.and_then(Profile::find);
            let of_profile = profile.and_then(|profile| profile.auth.as_ref()).map(Auth::to_string);
            let auth = ways.auth.map(str::to_owned).or(of_profile);
            prop_assert_eq!(auth.is_some(), channel.auth.is_some());
            prop_assert_eq!(auth.as_deref() == Some("none"), channel.auth.as_ref().is_some_and(|a| a.name.is_empty()));
            let limits = ways.limits.or(profile.map(|profile| profile.limits.as_str())).unwrap_or("route");
            prop_assert_eq!(channel.limits() == pb::Limits::Channel, limits == "channel");
            let rules = profile.map(|profile| profile.overrides).unwrap_or_default();
            prop_assert_eq!(channel.overrides.len(), ways.overrides.len() + rules.len());
            let own = channel.overrides.iter().zip(&ways.overrides);
            for (compiled, (status, class)) in own {
                prop_assert_eq!((compiled.status, compiled.class.as_str()), (u32::from(*status), *class));
            }
        }
    }

    #[test]
    fn a_document_that_was_applied_does_not_differ_from_itself_in_whatever_form(doc in docs(), seed: u64) {
        let applied = catalog(&doc.toml(false));
        let forms = [doc.toml(false), doc.shuffled(seed).toml(true), doc.json(), doc.shuffled(seed).json()];
        for form in forms {
            prop_assert_eq!(diff(&applied, &catalog(&form)), vec![]);
        }
    }

    #[test]
    fn a_difference_read_backwards_is_the_difference_backwards(one in docs(), other in docs()) {
        let (one, other) = (catalog(&one.toml(false)), catalog(&other.toml(false)));
        let turned: Vec<Change> = diff(&other, &one)
            .into_iter()
            .map(|change| Change { path: change.path, before: change.after, after: change.before })
            .collect();
        prop_assert_eq!(diff(&one, &other), turned);
    }

    #[test]
    fn no_bytes_kill_the_reader(bytes in vec(any::<u8>(), 0..200), text in "[\\[\\]{}=\"a-z.,\n0-9 :'#-]{0,80}") {
        let _ = parse(&bytes);
        let _ = parse(text.as_bytes());
        let _ = parse(format!("{{{text}").as_bytes());
    }
}
