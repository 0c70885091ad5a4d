//! How a command ends: the exit codes, and a fault that says what is wrong and what to do.

use std::io;
use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or no difference.
    Done,
    /// A difference, or what was asked for does not exist.
    Different,
    /// It did not work.
    Error,
    /// A rollout that does not go on by itself, or went back.
    Halted,
    /// It took too long.
    Timeout,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Different => 1,
            Exit::Error => 2,
            Exit::Halted => 3,
            Exit::Timeout => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// Why a command did not do what it should.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// With what to end.
    pub exit: Exit,
    /// Lines that stand by themselves, before the message: the faults of a document.
    pub lines: Vec<String>,
    /// What is wrong, and where; empty when nobody is left to read it.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Fault {
    /// A fault that ends with code 2.
    pub fn error(message: impl Into<String>) -> Self {
        Fault { exit: Exit::Error, lines: Vec::new(), message: message.into(), help: None }
    }

    /// The same with another exit code.
    pub fn exit(self, exit: Exit) -> Self {
        Fault { exit, ..self }
    }

    /// The same with advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Fault { help: Some(help.into()), ..self }
    }

    /// The same with lines before the message.
    pub fn lines(self, lines: Vec<String>) -> Self {
        Fault { lines, ..self }
    }
}

impl From<io::Error> for Fault {
    /// Of writing the result. Whoever closed the pipe has seen enough: that is an end, not a fault.
    fn from(cause: io::Error) -> Self {
        if cause.kind() == io::ErrorKind::BrokenPipe {
            Fault::error("").exit(Exit::Done)
        } else {
            Fault::error(format!("cannot write the result: {cause}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_documented_numbers() {
        let codes = [Exit::Done, Exit::Different, Exit::Error, Exit::Halted, Exit::Timeout].map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_closed_pipe_ends_quietly_and_a_full_disk_does_not() {
        let closed = Fault::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((closed.exit, closed.message.as_str()), (Exit::Done, ""));
        let full = Fault::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit, Exit::Error);
        assert!(full.message.starts_with("cannot write the result: "));
    }
}
