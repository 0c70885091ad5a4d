//! `ChainService`: the chains of the current revision, and beside them where breakers are open now.

use std::collections::BTreeMap;

use common::catalog::{Catalog, Chain};
use common::dialect::Dialect;
use common::pb::admin as pb;
use pb::chain_service_server::ChainService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::error::Error;
use crate::grpc::status;
use crate::observed::look::no_model;
use crate::revision::head::Wanted;

#[tonic::async_trait]
impl ChainService for Admin {
    async fn get_chain(
        &self,
        request: Request<pb::GetChainRequest>,
    ) -> Result<Response<pb::GetChainResponse>, Status> {
        let chains = self.chain(request.get_ref()).map_err(status::of)?;
        Ok(Response::new(pb::GetChainResponse { chains }))
    }

    async fn list_chains(
        &self,
        _request: Request<pb::ListChainsRequest>,
    ) -> Result<Response<pb::ListChainsResponse>, Status> {
        let chains = self.all().map_err(status::of)?;
        Ok(Response::new(pb::ListChainsResponse { chains }))
    }
}

impl Admin {
    fn chain(&self, request: &pb::GetChainRequest) -> Result<Vec<pb::Chain>, Error> {
        let wanted = self.plane.wanted()?;
        let catalog = catalog(&wanted)?;
        let none = || Error::NotFound {
            what: "model",
            name: format!("\"{}\": no catalog was applied yet", request.model),
        };
        let chains = find(catalog.ok_or_else(none)?, request)?;
        Ok(shown(chains, wanted.revision(), &self.plane.nodes.open_channels()))
    }

    fn all(&self) -> Result<Vec<pb::Chain>, Error> {
        let wanted = self.plane.wanted()?;
        let Some(catalog) = catalog(&wanted)? else { return Ok(Vec::new()) };
        let chains = catalog.models().flat_map(|(model, _)| catalog.chains(model.as_str())).collect();
        Ok(shown(chains, wanted.revision(), &self.plane.nodes.open_channels()))
    }
}

/// The catalog of the current revision; none before the first.
fn catalog(wanted: &Wanted) -> Result<Option<&Catalog>, Error> {
    match &wanted.current {
        None => Ok(None),
        Some(current) => current.catalog.as_ref().map(Some).ok_or(Error::Broken(
            "this version cannot read the current revision of the catalog; apply it again to see its faults",
        )),
    }
}

fn find(catalog: &Catalog, request: &pb::GetChainRequest) -> Result<Vec<Chain>, Error> {
    let pb::GetChainRequest { model, dialect } = request;
    if catalog.model(model).is_none() {
        return Err(no_model(model, catalog.models().map(|(name, _)| name.as_str())));
    }
    let chains = catalog.chains(model);
    if dialect.is_empty() {
        return Ok(chains);
    }
    let wanted: Dialect = dialect.parse().map_err(|_| {
        let names = Dialect::ALL.map(Dialect::as_str).join(", ");
        Error::Argument {
            field: "dialect",
            message: format!("no such dialect \"{dialect}\"; there are {names}"),
        }
    })?;
    let spoken = chains.iter().map(|chain| chain.dialect.as_str()).collect::<Vec<_>>().join(", ");
    let chain = chains.into_iter().find(|chain| chain.dialect == wanted);
    let absent = || format!("\"{model}\" for {wanted}; its channels speak {spoken}");
    chain.map(|chain| vec![chain]).ok_or_else(|| Error::NotFound { what: "chain", name: absent() })
}

fn shown(chains: Vec<Chain>, revision: u64, open_on: &BTreeMap<String, Vec<String>>) -> Vec<pb::Chain> {
    let hop = |hop: common::catalog::ChainHop| pb::Hop {
        open_on: open_on.get(hop.channel.as_str()).cloned().unwrap_or_default(),
        channel: hop.channel.to_string(),
        upstream_model: hop.upstream_model,
        input_cost: hop.input_cost,
        output_cost: hop.output_cost,
        order: hop.order.to_string(),
    };
    let chain = |chain: Chain| pb::Chain {
        model: chain.model.to_string(),
        dialect: chain.dialect.to_string(),
        revision,
        hops: chain.hops.into_iter().map(hop).collect(),
    };
    chains.into_iter().map(chain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &[u8] = br#"
        [channels.direct]
        dialects = ["openai-chat"]
        base_url = "https://direct.example/v1"
        credential = "env:KEY"
        [channels.reseller]
        dialects = ["openai-chat"]
        base_url = "https://reseller.example/v1"
        credential = "env:KEY"
        [models."gpt-4o"]
        routes = [
          { channel = "direct", upstream_model = "gpt-4o-2024", cost = { input = "2.50", output = "10.00" } },
          { channel = "reseller", upstream_model = "gpt-4o", cost = { input = "2.00", output = "8.00" } },
        ]
    "#;

    fn catalog() -> Catalog {
        common::catalog::parse(CATALOG).unwrap().catalog
    }

    fn ask(model: &str, dialect: &str) -> Result<Vec<Chain>, Error> {
        find(&catalog(), &pb::GetChainRequest { model: model.to_owned(), dialect: dialect.to_owned() })
    }

    #[test]
    fn a_chain_is_that_of_the_catalog_and_open_breakers_stand_beside_it() {
        let open_on = BTreeMap::from([("reseller".to_owned(), vec!["node-a".to_owned()])]);
        let chains = shown(ask("gpt-4o", "openai-chat").unwrap(), 42, &open_on);
        let hop =
            |channel: &str, upstream: &str, input: &str, output: &str, order: &str, open: &[&str]| pb::Hop {
                channel: channel.to_owned(),
                upstream_model: upstream.to_owned(),
                input_cost: input.to_owned(),
                output_cost: output.to_owned(),
                order: order.to_owned(),
                open_on: open.iter().map(|node| (*node).to_owned()).collect(),
            };
        let want = pb::Chain {
            model: "gpt-4o".to_owned(),
            dialect: "openai-chat".to_owned(),
            revision: 42,
            hops: vec![
                hop("reseller", "gpt-4o", "2.00", "8.00", "3.5", &["node-a"]),
                hop("direct", "gpt-4o-2024", "2.50", "10.00", "4.375", &[]),
            ],
        };
        assert_eq!(chains, [want]);
    }

    #[test]
    fn without_a_dialect_every_chain_of_the_model_is_answered() {
        assert_eq!(ask("gpt-4o", "").unwrap().len(), 1);
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let table = [
            ("gpt-40", "", "no such model: \"gpt-40\"; did you mean \"gpt-4o\"?"),
            ("gpt-4o", "gemini", "no such chain: \"gpt-4o\" for gemini; its channels speak openai-chat"),
        ];
        for (model, dialect, text) in table {
            let error = ask(model, dialect).unwrap_err();
            assert!(matches!(error, Error::NotFound { .. }), "{error}");
            assert_eq!(error.to_string(), text);
        }
        let faulty = ask("gpt-4o", "openai-chatt").unwrap_err();
        assert!(
            faulty
                .to_string()
                .starts_with("dialect: no such dialect \"openai-chatt\"; there are openai-chat, ")
        );
    }
}
