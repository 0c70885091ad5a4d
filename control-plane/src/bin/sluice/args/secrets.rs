//! Commands on the credentials of channels that the control plane keeps.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on secrets.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Keep a value, in place of the one before; nodes have it within seconds
    #[command(
        after_help = "The value comes from stdin or a file, never from an argument: that would be in the shell's history \
                      and in the list of processes.\n\
                      By hand: read -rs V; printf %s \"$V\" | sluice secret set NAME"
    )]
    Set {
        /// What channels call it behind secret:
        name: String,
        /// Read the value from this file, not from stdin
        #[arg(long, value_name = "FILE")]
        from_file: Option<PathBuf>,
    },
    /// List the secrets: who set them when, and which channels use them; never a value
    List,
    /// Remove a secret that no channel in service uses
    Delete {
        /// Its name
        name: String,
        /// Also while it is in use: its channels are suspended on every node
        #[arg(long)]
        force: bool,
    },
    /// Seal every value anew with the control plane's first key file
    Rekey,
}
