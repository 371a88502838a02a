//! How records are sliced into samples: the view, and its options.

use clap::Args;
use windrow::{
    DocumentsLayout, Fit, Labels, LossOn, Mode, Nan, Overlong, Pad, Per, Positions, ScalerName, Scope,
    Starts, Strategy, Tail, ViewRecipe,
};

use super::word;
use crate::failure::Failure;

/// How records are cut into samples.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to cut")]
pub(crate) struct Cutting {
    /// Blocks of N inputs over the joined records
    #[arg(long, value_name = "N", group = "view")]
    pack: Option<u64>,
    /// One row of N inputs per record
    #[arg(long, value_name = "N", group = "view")]
    records: Option<u64>,
    /// Sliding windows: context, prediction (0), stride (context + prediction)
    #[arg(long, value_name = "C[,P[,S]]", group = "view", value_parser = windows)]
    windows: Option<Width>,
    /// N values of each record, from a random place
    #[arg(long, value_name = "N", group = "view")]
    crop: Option<u64>,
    /// Whole records side by side in N positions
    #[arg(long, value_name = "N", group = "view")]
    bins: Option<u64>,
    /// Records one after the other in N positions, split where a row is full
    #[arg(long, value_name = "N", group = "view")]
    segments: Option<u64>,
    /// Records whole, of data whose records are rows or JSON
    #[arg(long, group = "view")]
    rows: bool,
    /// With --rows: batches are columns, of numbers tensors
    #[arg(long)]
    stack: bool,
    /// With --pack: this id stands after every record
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    eos: Option<i64>,
    /// With --pack: keep documents apart: position_ids, segment_ids, cu_seqlens; a document is a record, or ends with --eos
    #[arg(long)]
    documents: bool,
    /// With --documents: position_ids count from the document's first token in the block, or from its first [default: block]
    #[arg(long, ignore_case = true, value_parser = word::<Positions>(&["block", "document"]))]
    positions: Option<Positions>,
    /// With --documents: the label of what is not learned [default: -100]
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    ignore_index: Option<i64>,
    /// With --pack: every token a target in one row, its input the token before
    #[arg(long)]
    shifted: bool,
    /// With --bins: what becomes of records longer than N [default: cut]
    #[arg(long, ignore_case = true, value_parser = word::<Overlong>(&["cut", "split", "drop"]))]
    overlong: Option<Overlong>,
    /// With --bins: rows of neighbours, as --shuffle blocks reads them: all, block, or a number of consecutive records [default: all]
    #[arg(long, value_name = "RECORDS")]
    scope: Option<Scope>,
    /// With --records: rows of N, or as long as the longest of their batch [default: length]
    #[arg(long, ignore_case = true, value_parser = word::<Pad>(&["length", "longest"]))]
    pad: Option<Pad>,
    /// With --records: so many rows of about the same length come together
    #[arg(long, value_name = "ROWS")]
    group: Option<u64>,
    /// With --documents, --shifted, --bins or --segments: only these tensors; with --windows: these too
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    fields: Vec<String>,
    /// With --windows and --fields time_features: the frequency of times, where the data does not say it: h, 15min, D, MS
    #[arg(long, value_name = "FREQ")]
    freq: Option<String>,
    /// With --pack, --records, --windows, --bins or --segments: the token after each, the input itself, or no labels
    /// [default: next]
    #[arg(long, ignore_case = true, value_parser = word::<Labels>(&["next", "same", "none"]))]
    labels: Option<Labels>,
    /// With --windows: what becomes of the values after a record's last full window [default: drop]
    #[arg(long, ignore_case = true, value_parser = word::<Tail>(&["drop", "pad"]))]
    tail: Option<Tail>,
    /// With --windows: which labels are learned [default: all]
    #[arg(long, ignore_case = true, value_parser = word::<LossOn>(&["all", "prediction"]))]
    loss_on: Option<LossOn>,
    /// With --segments: lengths that a row may have instead of N
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    buckets: Vec<u64>,
    /// With --windows or --segments: what each whole record is scaled by [default: none]
    #[arg(long, ignore_case = true, value_parser = word::<ScalerName>(&["none", "standard", "minmax", "robust", "mean_abs", "max", "zero"]))]
    scaler: Option<ScalerName>,
    /// With --scaler: what shares statistics, a series, each channel of it, or each window by its context [default: series]
    #[arg(long, ignore_case = true, value_parser = word::<Per>(&["series", "channel", "window"]))]
    per: Option<Per>,
    /// With --windows: a stride apart, as many at random places, or one that ends with each series [default: strided]
    #[arg(long, ignore_case = true, value_parser = word::<Starts>(&["strided", "random", "last"]))]
    starts: Option<Starts>,
    /// With --windows or --segments: what NaN and infinity do [default: propagate]
    #[arg(long, ignore_case = true, value_parser = word::<Nan>(&["propagate", "mask"]))]
    nan: Option<Nan>,
    /// With --scaler: the part of each record that statistics come from, as 0,0.7 (fractions) or 0..500 (values)
    #[arg(long, value_name = "PART", value_parser = fit)]
    fit: Option<Fit>,
}

/// The numbers of `--windows`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Width {
    context_length: u64,
    prediction_length: u64,
    stride: Option<u64>,
}

impl Cutting {
    /// The view that was typed, where one was.
    pub(crate) fn view(&self) -> Result<Option<ViewRecipe>, Failure> {
        self.check()?;
        let labels = self.labels.unwrap_or_default();
        let pack = self.pack.map(|length| ViewRecipe::Pack {
            length,
            eos: self.eos,
            shifted: self.shifted,
            documents: self.documents.then(|| DocumentsLayout {
                positions: self.positions.unwrap_or_default(),
                ignore_index: self.ignore_index.unwrap_or(Labels::IGNORED),
            }),
            fields: self.fields.clone(),
            labels,
        });
        let pad = self.pad.unwrap_or_default();
        let records = self.records.map(|length| ViewRecipe::Records {
            length,
            pad_value: 0,
            pad,
            group: self.group,
            labels,
        });
        let crop = self.crop.map(|length| ViewRecipe::Crop { length, mode: Mode::default() });
        let fields = || self.fields.clone();
        let bins = self.bins.map(|length| ViewRecipe::Bins {
            length,
            strategy: Strategy::default(),
            overlong: self.overlong.unwrap_or_default(),
            scope: self.scope.unwrap_or_default(),
            pad_value: 0,
            fields: fields(),
            labels,
        });
        let (scaler, nan) = (self.scaler.clone().unwrap_or_default(), self.nan.unwrap_or_default());
        let segments = self.segments.map(|length| ViewRecipe::Segments {
            length,
            buckets: self.buckets.clone(),
            scaler: scaler.clone(),
            nan,
            fit: self.fit,
            per: self.per.unwrap_or_default(),
            fields: fields(),
            labels,
        });
        let windows = self.windows.map(|width| ViewRecipe::Windows {
            context_length: width.context_length,
            prediction_length: width.prediction_length,
            stride: width.stride,
            tail: self.tail.unwrap_or_default(),
            scaler,
            nan,
            fit: self.fit,
            per: self.per.unwrap_or_default(),
            starts: self.starts.unwrap_or_default(),
            loss_on: self.loss_on.unwrap_or_default(),
            labels,
            fields: fields(),
            freq: self.freq.clone(),
        });
        // Which columns, data is opened with.
        let rows = self.rows.then_some(ViewRecipe::Rows { columns: None, stack: self.stack });
        Ok(pack.or(records).or(windows).or(crop).or(bins).or(segments).or(rows))
    }

    // clap waives `requires` where the views exclude each other.
    fn check(&self) -> Result<(), Failure> {
        let windows = self.windows.is_some();
        let series = windows || self.segments.is_some();
        let labelled = series || self.pack.is_some() || self.records.is_some() || self.bins.is_some();
        let options = [
            ("--eos", self.eos.is_some(), "--pack", self.pack.is_some()),
            ("--stack", self.stack, "--rows", self.rows),
            ("--documents", self.documents, "--pack", self.pack.is_some()),
            ("--positions", self.positions.is_some(), "--documents", self.documents),
            ("--ignore-index", self.ignore_index.is_some(), "--documents", self.documents),
            ("--shifted", self.shifted, "--pack", self.pack.is_some()),
            ("--overlong", self.overlong.is_some(), "--bins", self.bins.is_some()),
            ("--scope", self.scope.is_some(), "--bins", self.bins.is_some()),
            ("--pad", self.pad.is_some(), "--records", self.records.is_some()),
            ("--group", self.group.is_some(), "--records", self.records.is_some()),
            (
                "--fields",
                !self.fields.is_empty(),
                "--documents, --shifted, --windows, --bins or --segments",
                self.documents || self.shifted || series || self.bins.is_some(),
            ),
            (
                "--labels",
                self.labels.is_some(),
                "--pack, --records, --windows, --bins or --segments",
                labelled,
            ),
            ("--freq", self.freq.is_some(), "--windows", windows),
            ("--tail", self.tail.is_some(), "--windows", windows),
            ("--loss-on", self.loss_on.is_some(), "--windows", windows),
            ("--buckets", !self.buckets.is_empty(), "--segments", self.segments.is_some()),
            ("--scaler", self.scaler.is_some(), "--windows or --segments", series),
            ("--starts", self.starts.is_some(), "--windows", windows),
            ("--per", self.per.is_some(), "--scaler", self.scaler.is_some()),
            ("--fit", self.fit.is_some(), "--scaler", self.scaler.is_some()),
            ("--nan", self.nan.is_some(), "--windows or --segments", series),
        ];
        match options.into_iter().find(|(_, is_given, _, fits)| *is_given && !fits) {
            Some((option, _, view, _)) => Err(Failure::usage(format!("{option} is an option of {view}"))),
            None => Ok(()),
        }
    }
}

fn windows(text: &str) -> Result<Width, String> {
    let numbers: Vec<u64> = text
        .split(',')
        .map(|n| n.trim().parse().map_err(|_| format!("{n:?} is not a whole number")))
        .collect::<Result<_, _>>()?;
    match numbers[..] {
        [c] => Ok(Width { context_length: c, prediction_length: 0, stride: None }),
        [c, p] => Ok(Width { context_length: c, prediction_length: p, stride: None }),
        [c, p, s] => Ok(Width { context_length: c, prediction_length: p, stride: Some(s) }),
        _ => Err(format!("{} numbers, expected context[,prediction[,stride]]", numbers.len())),
    }
}

// Two fractions with a comma, or values from..to.
fn fit(text: &str) -> Result<Fit, String> {
    let numbers = |sign: &str| text.split_once(sign).map(|(from, to)| (from.trim(), to.trim()));
    let fit = match (numbers(".."), numbers(",")) {
        (Some((from, to)), _) => {
            from.parse().ok().zip(to.parse().ok()).map(|(from, to)| Fit::Values(from, to))
        }
        (None, Some((from, to))) => {
            from.parse().ok().zip(to.parse().ok()).map(|(from, to)| Fit::Fraction(from, to))
        }
        (None, None) => None,
    };
    let fit = fit.ok_or_else(|| "expected two fractions as 0,0.7, or values as 0..500".to_string())?;
    fit.check().map(|()| fit).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

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
    fn windows_take_one_to_three_numbers() {
        assert_eq!(view("--windows 64,8,4")["windows"]["stride"], 4);
        assert_eq!(view("--windows 64")["windows"]["prediction_length"], 0);
        assert_eq!(cutting("--windows 64,8,4,2").unwrap_err(), ErrorKind::ValueValidation);
        assert_eq!(cutting("--windows 64,x").unwrap_err(), ErrorKind::ValueValidation);
    }

    #[test]
    fn views_of_series_have_the_options_that_python_has() {
        assert_eq!(
            view("--windows 8,2 --tail pad --scaler Zero --nan mask --loss-on prediction"),
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
            view("--windows 8,2 --scaler standard --per window --starts last"),
            serde_json::json!({ "windows": {
                "context_length": 8, "prediction_length": 2, "tail": "drop", "scaler": "zero", "per": "window", "starts": "last",
            } })
        );
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
    fn rows_take_no_number() {
        assert_eq!(view("--rows"), serde_json::json!({ "rows": {} }));
        assert_eq!(view("--rows --stack"), serde_json::json!({ "rows": { "stack": true } }));
        assert_eq!(cutting("--rows --pack 8").unwrap_err(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn an_option_that_the_view_does_not_have_is_refused() {
        for (options, said) in [
            ("--scaler max", "--scaler is an option of --windows or --segments"),
            ("--pack 8 --nan mask", "--nan is an option of --windows or --segments"),
            ("--segments 8 --tail pad", "--tail is an option of --windows"),
            ("--segments 8 --starts last", "--starts is an option of --windows"),
            ("--windows 8 --per channel", "--per is an option of --scaler"),
            ("--windows 8 --buckets 2", "--buckets is an option of --segments"),
            ("--records 8 --eos 3", "--eos is an option of --pack"),
            ("--bins 8 --documents", "--documents is an option of --pack"),
            ("--records 8 --overlong cut", "--overlong is an option of --bins"),
            ("--pack 8 --scope block", "--scope is an option of --bins"),
            ("--bins 8 --pad longest", "--pad is an option of --records"),
            ("--bins 8 --group 4", "--group is an option of --records"),
            ("--pack 8 --positions block", "--positions is an option of --documents"),
            ("--bins 8 --ignore-index 0", "--ignore-index is an option of --documents"),
            (
                "--pack 8 --fields labels",
                "--fields is an option of --documents, --shifted, --windows, --bins or --segments",
            ),
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
