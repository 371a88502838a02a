//! How records are sliced into samples: the view, and its options, as the tables of views have them.

use clap::{Arg, ArgGroup, ArgMatches, Command, value_parser};
use serde_json::{Map, Value};
use windrow::{OptionRow, VIEWS, ViewInfo, ViewRecipe};

use crate::failure::Failure;
use crate::options::{self, flag, own_args};

/// How records are cut into samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cutting {
    /// The view that was typed, and the number that came with it.
    view: Option<(&'static ViewInfo, Map<String, Value>)>,
    /// By what they are typed as.
    options: Map<String, Value>,
}

// Options of a view but the one that it is called with.
fn own(view: &'static ViewInfo) -> impl Iterator<Item = &'static OptionRow> {
    view.options().filter(|option| view.number != Some(option.name))
}

/// Each option once, by what it is typed as, with what the views that have it say of it.
fn all() -> Vec<(OptionRow, String)> {
    options::of_several(VIEWS.iter().flat_map(|view| own(view).map(|option| (view.name, *option))), "--")
}

fn view_arg(view: &'static ViewInfo) -> Arg {
    let arg = Arg::new(view.name).long(view.name).help(view.help).group("view");
    match view.number {
        Some(_) => arg.value_name("N").value_parser(value_parser!(u64)),
        None => arg.action(clap::ArgAction::SetTrue),
    }
}

/// A view and the options that it has.
pub(crate) fn of_view(command: Command, view: &'static ViewInfo) -> Command {
    options::args(command.arg(view_arg(view)), own(view), |arg| arg)
}

own_args!(
    [] Cutting,
    |matches| Cutting::typed(matches),
    |command| {
        let command = command.next_help_heading("How to cut").group(ArgGroup::new("view"));
        let command = VIEWS.iter().fold(command, |command, view| command.arg(view_arg(view)));
        let command = all().into_iter().fold(command, |command, (option, help)| {
            command.arg(options::arg(flag(&option), option.takes).help(help))
        });
        // What a command has of its own is not among them.
        command.next_help_heading(None)
    }
);

impl Cutting {
    fn typed(matches: &ArgMatches) -> Cutting {
        let typed = |view: &'static ViewInfo| {
            let given = match view.number {
                Some(name) => matches
                    .get_one::<u64>(view.name)
                    .map(|n| Map::from_iter([(name.to_string(), Value::from(*n))])),
                None => matches.get_flag(view.name).then(Map::new),
            };
            given.map(|given| (view, given))
        };
        let given = |(option, _): (OptionRow, _)| {
            Some((flag(&option).to_string(), options::given(matches, flag(&option), option.takes)?))
        };
        Cutting { view: VIEWS.iter().find_map(typed), options: all().into_iter().filter_map(given).collect() }
    }

    /// The view that was typed, where one was.
    pub(crate) fn view(&self) -> Result<Option<ViewRecipe>, Failure> {
        let view = self.view.as_ref().map(|(view, _)| *view);
        let has = |view: &ViewInfo, name: &str| view.options().any(|option| flag(option) == name);
        if let Some(name) = self.options.keys().find(|name| !view.is_some_and(|view| has(view, name))) {
            let of = VIEWS.iter().filter(|view| has(view, name)).map(|view| format!("--{}", view.name));
            let of = of.collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(format!("--{} is an option of {of}", name.replace('_', "-"))));
        }
        let Some((view, number)) = &self.view else { return Ok(None) };
        let named = |(typed, value): (String, Value)| {
            let option = view.options().find(|option| flag(option) == typed);
            (option.map_or(typed, |option| option.name.to_string()), value)
        };
        let given = number.clone().into_iter().chain(self.options.clone().into_iter().map(named)).collect();
        Ok(Some(ViewRecipe::of(view.name, given)?))
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;
    use clap::{Args, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        cutting: Cutting,
    }

    fn cutting(options: &str) -> Result<Cutting, ErrorKind> {
        let line = ["windrow"].into_iter().chain(options.split_whitespace());
        Line::try_parse_from(line).map(|line| line.cutting).map_err(|e| e.kind())
    }

    fn view(options: &str) -> serde_json::Value {
        serde_json::to_value(cutting(options).unwrap().view().unwrap_or_else(|e| panic!("{e}"))).unwrap()
    }

    #[test]
    fn a_view_takes_one_number_and_the_others_have_their_names() {
        assert_eq!(view("--windows 64 --prediction-length 8 --stride 4")["windows"]["stride"], 4);
        assert_eq!(view("--windows 64")["windows"]["prediction_length"], 0);
        assert_eq!(cutting("--windows 64,8").unwrap_err(), ErrorKind::ValueValidation);
    }

    #[test]
    fn views_of_series_have_the_options_that_python_has() {
        assert_eq!(
            view(
                "--windows 8 --prediction-length 2 --tail pad --scaler Zero --nan mask --loss-on prediction"
            ),
            serde_json::json!({ "windows": {
                "context_length": 8, "prediction_length": 2, "tail": "pad", "scaler": "zero", "nan": "mask",
                "loss_on": "prediction",
            }})
        );
        assert_eq!(
            view("--windows 8 --scaler max --fit 0,0.7"),
            serde_json::json!({ "windows": {
                "context_length": 8, "prediction_length": 0, "tail": "drop", "scaler": "max", "fit": { "fraction": [0.0, 0.7] }
            } })
        );
        assert_eq!(
            view("--segments 8 --scaler max --fit 5..50")["segments"]["fit"],
            serde_json::json!({ "values": [5, 50] })
        );
        assert_eq!(
            view("--segments 8 --buckets 2,4 --scaler max"),
            serde_json::json!({ "segments": { "length": 8, "buckets": [2, 4], "scaler": "max" } })
        );
        assert_eq!(
            view("--windows 8 --prediction-length 2 --scaler standard --per window --starts last"),
            serde_json::json!({ "windows": {
                "context_length": 8, "prediction_length": 2, "tail": "drop", "scaler": "zero", "per": "window", "starts": "last",
            } })
        );
        assert_eq!(view("--windows 8 --window-channels apart")["windows"]["channels"], "apart");
        assert_eq!(view("--codes 8 --channels 9")["codes"]["layout"]["channels"], 9);
        assert_eq!(view("--segments 8 --scaler mean_abs --per channel")["segments"]["scaler"], "mean_abs");
        let plain = view("--windows 8");
        assert_eq!(view("--windows 8 --scaler none --nan propagate --tail drop --loss-on all"), plain);
    }

    #[test]
    fn rows_of_documents_have_the_options_that_python_has() {
        let bins = view("--bins 8 --overlong Split --scope block --fields cu_seqlens,max_seqlen");
        assert_eq!(bins["bins"]["scope"], "block");
        assert_eq!(bins["bins"]["overlong"], "split");
        assert_eq!(bins["bins"]["fields"], serde_json::json!(["cu_seqlens", "max_seqlen"]));
        assert_eq!(
            view("--pack 8 --reshuffle --scope block")["pack"],
            serde_json::json!({ "length": 8, "reshuffle": true, "scope": "block" })
        );
        assert_eq!(view("--pack 8 --scope all"), view("--pack 8"));
        assert_eq!(view("--bins 8 --reshuffle")["bins"]["reshuffle"], true);
        assert_eq!(
            view("--pack 8 --documents --fields labels")["pack"]["fields"],
            serde_json::json!(["labels"])
        );
        assert_eq!(view("--pack 8 --documents")["pack"]["documents"]["ignore_index"], -100);
        let documents =
            &view("--pack 8 --documents --positions document --ignore-index -1")["pack"]["documents"];
        assert_eq!(*documents, serde_json::json!({ "positions": "document", "ignore_index": -1 }));
        let records = &view("--records 8 --pad longest --group 32")["records"];
        assert_eq!((&records["pad"], &records["group"]), (&"longest".into(), &32.into()));
    }

    #[test]
    fn each_option_of_a_view_is_an_argument() {
        let command = Cutting::augment_args(clap::Command::new("windrow"));
        for view in VIEWS {
            for option in own(view) {
                let long = flag(option).replace('_', "-");
                assert!(command.get_arguments().any(|arg| arg.get_long() == Some(&long)), "--{long}");
            }
        }
        let bins = &view("--bins 8 --strategy first_fit --pad-value -1")["bins"];
        assert_eq!((&bins["strategy"], &bins["pad_value"]), (&"first_fit".into(), &(-1).into()));
        assert_eq!(view("--crop 8 --mode start")["crop"]["mode"], "start");
        let codes = &view("--codes 8 --delay-pattern 0,1 --masks none --codebook none")["codes"]["layout"];
        assert_eq!((&codes["delay_pattern"], &codes["masks"]), (&serde_json::json!([0, 1]), &"none".into()));
        assert_eq!(codes["codebook_size"], Value::Null);
    }

    #[test]
    fn rows_take_no_number() {
        assert_eq!(view("--rows"), serde_json::json!({ "rows": {} }));
        assert_eq!(view("--rows --stack"), serde_json::json!({ "rows": { "stack": true } }));
        assert_eq!(cutting("--rows --pack 8").unwrap_err(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn an_option_that_the_view_does_not_have_is_refused() {
        for (options, said) in [
            ("--scaler max", "--scaler is an option of --windows, --segments"),
            ("--pack 8 --nan mask", "--nan is an option of --windows, --segments"),
            ("--segments 8 --tail pad", "--tail is an option of --windows"),
            ("--codes 8 --window-channels apart", "--window-channels is an option of --windows"),
            ("--segments 8 --starts last", "--starts is an option of --windows"),
            ("--windows 8 --buckets 2", "--buckets is an option of --segments"),
            ("--records 8 --eos 3", "--eos is an option of --pack"),
            ("--bins 8 --documents", "--documents is an option of --pack"),
            ("--records 8 --overlong cut", "--overlong is an option of --bins"),
            ("--records 8 --scope block", "--scope is an option of --pack, --bins"),
            ("--segments 8 --reshuffle", "--reshuffle is an option of --pack, --bins"),
            ("--bins 8 --pad longest", "--pad is an option of --records"),
            ("--bins 8 --group 4", "--group is an option of --records"),
            ("--bins 8 --positions block", "--positions is an option of --pack"),
            ("--bins 8 --ignore-index 0", "--ignore-index is an option of --pack"),
            ("--records 8 --fields labels", "--fields is an option of --pack, --windows, --bins, --segments"),
            ("--records 8 --stack", "--stack is an option of --rows"),
        ] {
            let failure = cutting(options).unwrap().view().unwrap_err();
            assert_eq!((failure.to_string().as_str(), failure.exit()), (said, 2));
        }
        for options in [
            "--windows 8 --scaler max --fit 0.7,0.2",
            "--windows 8 --scaler max --fit 7",
            "--windows 8 --scaler mean",
            "--segments 8 --nan drop",
        ] {
            let kind = cutting(options).unwrap_err();
            assert!(
                matches!(kind, ErrorKind::InvalidValue | ErrorKind::ValueValidation),
                "{options}: {kind}"
            );
        }
        assert_eq!(cutting("--windows 8 --segments 8").unwrap_err(), ErrorKind::ArgumentConflict);
    }
}
