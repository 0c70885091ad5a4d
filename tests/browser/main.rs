//! What people see: the pages of a real control plane and its node, in a real browser.

mod admin;
mod driver;
mod history;
mod public;
mod status;
