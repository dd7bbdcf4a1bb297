//! Each flag of each verb has an effect, and a test that shows it.
//!
//! The effects of keys of job files are tested with the plan. For every other flag, the table names
//! a test whose text must use it.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory as _;

use crate::args::{Cli, keys};

/// Verb, flag, and the test (module in `tests/cli` and function) that shows what it does.
const TESTED: &[(&str, &str, &str)] = &[
    ("bench", "ab", "compare::two_job_files_run_in_turns"),
    ("bench", "rounds", "compare::two_job_files_run_in_turns"),
    ("bench", "threshold", "compare::in_turns_a_threshold_is_exit_code_1"),
    ("bench", "metric", "compare::in_turns_a_threshold_is_exit_code_1"),
    ("bench", "spec", "expected::a_user_s_figures_stand_beside_what_was_measured"),
    ("bench", "server", "expected::mistakes_in_figures_are_reported_before_anything_runs"),
    ("bench", "cufile-lib", "cufile::our_own_library_is_distinguished_from_nvidias"),
    ("bench", "cufile-set", "cufile::compatibility_mode_that_is_off_is_off"),
    ("bench", "destroy-data-on", "mounts::a_device_with_a_file_system"),
    ("bench", "overwrite", "guard::a_foreign_file"),
    ("bench", "set", "job_files::flags_over_a_file"),
    ("bench", "format", "bad_days::io_errors"),
    ("bench", "output", "bad_input::outputs"),
    ("bench", "share", "ranks::one_file_is_read_by_all_ranks_only_if_that_is_meant"),
    ("sweep", "share", "ranks_verbs::flags_of_ranks_reach_the_runs_of_a_sweep"),
    ("sweep", "rank-timeout", "ranks_verbs::a_point_whose_rank_dies_fails_and_the_sweep_goes_on"),
    ("bench", "rank-timeout", "ranks::a_rank_that_hangs_ends_the_run_and_is_named"),
    ("bench", "per-rank", "ranks::only_rank_0_prints_and_show_prints_it_again"),
    ("show", "per-rank", "ranks::only_rank_0_prints_and_show_prints_it_again"),
    ("bench", "details", "quick::only_the_record_stays"),
    ("bench", "force", "outputs::only_what_gpuio_wrote_is_replaced"),
    ("bench", "serve", "live_metrics::a_run_and_all_processes_are_served"),
    ("bench", "evidence", "journal::a_saved_record_is_shown_as_it_was"),
    ("bench", "dry-run", "dry_run::refusals_are_the_same"),
    ("bench", "section", "job_files::only_a_section"),
    ("bench", "eta", "job_files::only_a_section"),
    ("bench", "quiet", "journal::a_saved_record_is_shown_as_it_was"),
    ("bench", "no-stats-page", "stats::no_page_is_made_where_none_is_wanted"),
    ("bench", "no-watch", "no_effect::what_flags_change"),
    ("check", "only", "check::a_failure_is_exit_code_1_in_text_and_json"),
    ("check", "skip", "check::a_failure_is_exit_code_1_in_text_and_json"),
    ("check", "explain", "check::a_rule_is_explained"),
    ("check", "all", "no_effect::what_flags_change"),
    ("check", "mount", "check::a_mount_is_judged_and_proven_with_the_software_gpu"),
    ("check", "gpu", "check::a_mount_is_judged_and_proven_with_the_software_gpu"),
    ("check", "prove", "check::a_mount_is_judged_and_proven_with_the_software_gpu"),
    ("check", "from", "check::a_captured_mount_has_a_verdict_and_cufile_json_its_places"),
    ("check", "machine", "bundles::each_machine_is_answered_and_one_is_picked_by_name"),
    ("check", "hosts", "hosts::hosts_that_differ_are_named"),
    ("check", "format", "check::a_failure_is_exit_code_1_in_text_and_json"),
    ("collect", "output", "collect::a_script_is_replaced_on_request_only"),
    ("collect", "force", "collect::a_script_is_replaced_on_request_only"),
    ("compare", "axis", "compare::paths_of_one_record_compare_by_axis"),
    ("compare", "despite", "compare::a_software_gpu_is_refused_beside_real_results"),
    ("compare", "threshold", "compare::a_regression_is_exit_code_1"),
    ("compare", "metric", "compare::a_regression_is_exit_code_1"),
    ("compare", "format", "compare::two_runs_of_one_load_compare"),
    ("explain", "all", "check::a_warning_is_explained_by_the_name_in_its_brackets"),
    ("explain", "format", "check::what_verbs_say_has_every_format"),
    ("list", "format", "check::what_verbs_say_has_every_format"),
    ("exec", "env", "exec::what_it_does_is_reported_or_printed"),
    ("exec", "json", "exec::what_it_does_is_reported_or_printed"),
    ("exec", "verbose", "exec::what_it_does_is_reported_or_printed"),
    ("exec", "cufile", "exec::what_it_does_is_reported_or_printed"),
    ("exec", "gpu", "exec::what_it_does_is_reported_or_printed"),
    ("exec", "cufile-json", "exec::what_it_does_is_reported_or_printed"),
    ("plan", "gpu", "plan::other_forms"),
    ("plan", "mount", "plan::a_job_file_of_this_machine_is_one_for_bench"),
    ("plan", "drive", "plan::what_is_not_there_is_refused"),
    ("plan", "rw", "plan::what_should_be_reached_stands_beside_each_pair"),
    ("plan", "bs", "plan::a_job_file_of_this_machine_is_one_for_bench"),
    ("plan", "from", "hostile_text::captures_of_machines"),
    ("plan", "machine", "bundles::each_machine_is_answered_and_one_is_picked_by_name"),
    ("plan", "hosts", "hosts::seven_clients_are_one_plan_with_the_sum_and_its_bottleneck"),
    ("plan", "format", "plan::other_forms"),
    ("plan", "output", "plan::a_job_file_is_never_overwritten"),
    ("plan", "force", "outputs::only_what_gpuio_wrote_is_replaced"),
    ("check", "output", "outputs::every_verb_writes_files"),
    ("check", "force", "outputs::every_verb_writes_files"),
    ("compare", "output", "outputs::every_verb_writes_files"),
    ("compare", "force", "outputs::every_verb_writes_files"),
    ("show", "output", "outputs::every_verb_writes_files"),
    ("show", "force", "outputs::every_verb_writes_files"),
    ("topo", "output", "outputs::every_verb_writes_files"),
    ("topo", "force", "outputs::every_verb_writes_files"),
    ("why", "output", "outputs::every_verb_writes_files"),
    ("why", "force", "outputs::every_verb_writes_files"),
    ("plan", "spec", "plan::what_should_be_reached_stands_beside_each_pair"),
    ("plan", "server", "plan::what_is_not_there_is_refused"),
    ("plan", "system", "plan::what_is_not_there_is_refused"),
    ("report", "output", "report::only_its_own_files_are_overwritten"),
    ("report", "format", "report::a_page_and_every_other_format_of_two_runs"),
    ("report", "title", "no_effect::what_flags_change"),
    ("report", "x", "report::the_first_plot_is_drawn_across_the_named_axis"),
    ("report", "lines", "report::the_first_plot_is_drawn_across_the_named_axis"),
    ("report", "topo", "report::topology_is_of_the_records_machine_or_not_there"),
    ("report", "from", "report::topology_is_of_the_records_machine_or_not_there"),
    ("report", "embed-limit", "no_effect::what_flags_change"),
    ("report", "force", "report::only_its_own_files_are_overwritten"),
    ("show", "format", "journal::a_saved_record_is_shown_as_it_was"),
    ("show", "evidence", "journal::a_saved_record_is_shown_as_it_was"),
    ("show", "check", "outputs::a_changed_record_is_found"),
    ("network", "streams", "network::both_ends_count_the_same_bytes"),
    ("network", "direction", "network::what_is_not_gpuio_is_refused_on_both_sides"),
    ("network", "runtime", "network::both_ends_count_the_same_bytes"),
    ("network", "ramp", "network::both_ends_count_the_same_bytes"),
    ("network", "bind", "network::a_rate_from_outside_is_what_it_measures"),
    ("network", "format", "network::both_ends_count_the_same_bytes"),
    ("network", "output", "network::what_is_not_gpuio_is_refused_on_both_sides"),
    ("network", "force", "network::what_is_not_gpuio_is_refused_on_both_sides"),
    ("network", "serve", "network::wrong_words_are_usage_errors"),
    ("network", "count", "network::what_is_not_gpuio_is_refused_on_both_sides"),
    (
        "network",
        "max-streams",
        "network_hostile::the_server_says_how_many_streams_a_client_may_have",
    ),
    ("network", "timeout", "network::wrong_words_are_usage_errors"),
    ("stats", "level", "stats::two_runs_are_distinguished_and_every_level_says_more"),
    ("stats", "interval", "stats::a_watch_ends_with_its_process"),
    ("stats", "count", "stats::a_watch_ends_with_its_process"),
    ("stats", "format", "stats::two_runs_are_distinguished_and_every_level_says_more"),
    ("stats", "serve", "live_metrics::a_run_and_all_processes_are_served"),
    ("stats", "watch", "stats::a_watch_ends_with_its_process"),
    ("stats", "json", "stats::two_runs_are_distinguished_and_every_level_says_more"),
    ("sweep", "vary", "sweep::a_grid_with_a_condition_is_run_in_rounds_and_reported"),
    ("sweep", "format", "check::what_verbs_say_has_every_format"),
    ("sweep", "preset", "sweep::the_preset_guide_is_the_guides"),
    ("sweep", "one-at-a-time", "no_effect::what_flags_change"),
    ("sweep", "where", "sweep::a_grid_with_a_condition_is_run_in_rounds_and_reported"),
    ("sweep", "latency-target", "sweep::a_search_ends_at_the_bound"),
    ("sweep", "over", "sweep::a_search_ends_at_the_bound"),
    ("sweep", "repeats", "sweep::a_grid_with_a_condition_is_run_in_rounds_and_reported"),
    ("sweep", "confidence", "sweep::what_makes_no_sense_is_reported_before_anything_is_made"),
    ("sweep", "budget", "sweep::a_budget_ends_it_and_the_same_command_goes_on"),
    ("sweep", "cool-down", "no_effect::what_flags_change"),
    ("sweep", "order-seed", "no_effect::what_flags_change"),
    ("sweep", "output", "sweep::a_grid_with_a_condition_is_run_in_rounds_and_reported"),
    ("sweep", "dry-run", "sweep::the_preset_guide_is_the_guides"),
    ("sweep", "quiet", "no_effect::what_flags_change"),
    ("sweep", "cufile-lib", "sweep::the_preset_guide_is_the_guides"),
    ("sweep", "cufile-set", "no_effect::of_sweeps"),
    ("sweep", "destroy-data-on", "no_effect::what_flags_change"),
    ("sweep", "overwrite", "no_effect::what_flags_change"),
    ("sweep", "set", "sweep::a_grid_with_a_condition_is_run_in_rounds_and_reported"),
    ("top", "format", "top::lines_of_json_are_one_object_each"),
    ("top", "plain", "hostile_text::job_files_and_flags"),
    ("top", "json", "top::lines_of_json_are_one_object_each"),
    ("top", "interval", "top::lines_of_json_are_one_object_each"),
    ("top", "count", "top::lines_of_json_are_one_object_each"),
    ("top", "serve", "top::a_name_that_nothing_has_is_refused_with_those_there_are"),
    ("topo", "from", "topo::a_capture_of_this_machine_gives_its_answers"),
    ("topo", "machine", "bundles::each_machine_is_answered_and_one_is_picked_by_name"),
    (
        "topo",
        "keep-addresses",
        "hosts::servers_of_captures_without_addresses_are_not_taken_for_the_same",
    ),
    ("topo", "format", "topo::pictures_and_hwlocs_xml_are_whole"),
    ("topo", "capture", "topo::a_capture_of_this_machine_gives_its_answers"),
    ("version", "format", "bad_input::the_command_line_itself"),
    ("why", "mount", "why::this_directory_has_an_answer"),
    ("why", "gpu", "why::this_directory_has_an_answer"),
    ("why", "format", "why::this_directory_has_an_answer"),
    ("why", "from", "why::another_machine_is_answered_from_its_files"),
    ("why", "machine", "bundles::each_machine_is_answered_and_one_is_picked_by_name"),
    ("exec", "record", "replay::a_recorded_program_is_repeated"),
    ("exec", "anonymous", "replay::a_recorded_program_is_repeated"),
    ("exec", "prefetch", "prefetch::exec_prefetches_while_the_program_runs"),
    ("prefetch", "background", "prefetch::the_background_ends_with_a_process"),
    ("prefetch", "while", "prefetch::the_background_ends_with_a_process"),
    ("replay", "pace", "replay::recorded_pauses_take_their_time"),
    ("replay", "order", "replay::recorded_pauses_take_their_time"),
    ("replay", "set", "replay::bad_traces_have_their_place"),
    ("replay", "cufile-lib", "replay::flags_of_every_run"),
    ("replay", "cufile-set", "replay::flags_of_every_run"),
    ("replay", "spec", "replay::flags_of_every_run"),
    ("replay", "server", "replay::flags_of_every_run"),
    ("replay", "format", "replay::a_trace_is_repeated_on_every_path_with_its_holes"),
    ("replay", "output", "replay::recorded_pauses_take_their_time"),
    ("replay", "force", "replay::flags_of_every_run"),
    ("replay", "details", "replay::flags_of_every_run"),
    ("replay", "serve", "replay::flags_of_every_run"),
    ("replay", "evidence", "replay::flags_of_every_run"),
    ("replay", "dry-run", "replay::fio_s_traces_are_repeated"),
    ("replay", "eta", "job_files::only_a_section"),
    ("workload", "eta", "job_files::only_a_section"),
    ("replay", "quiet", "replay::recorded_pauses_take_their_time"),
    ("replay", "no-stats-page", "replay::recorded_pauses_take_their_time"),
    ("replay", "no-watch", "replay::recorded_pauses_take_their_time"),
    ("workload", "try", "workload::a_try_scales_what_is_long_and_says_so"),
    ("workload", "vary", "workload::several_values_of_a_key_are_a_row_each"),
    ("workload", "model", "workload::caches_are_read_while_others_are_written"),
    ("workload", "repeats", "workload::several_values_of_a_key_are_a_row_each"),
    ("workload", "set", "workload::flags_change_a_workload"),
    ("workload", "cufile-lib", "workload::flags_change_a_workload"),
    ("workload", "cufile-set", "workload::flags_change_a_workload"),
    ("workload", "spec", "workload::flags_change_a_workload"),
    ("workload", "server", "workload::flags_change_a_workload"),
    ("workload", "format", "workload::a_feed_reads_every_sample_once_an_epoch"),
    ("workload", "output", "workload::what_is_printed_says_the_scale"),
    ("workload", "force", "workload::what_is_printed_says_the_scale"),
    ("workload", "details", "workload::flags_change_a_workload"),
    ("workload", "serve", "workload::flags_change_a_workload"),
    ("workload", "evidence", "workload::what_is_printed_says_the_scale"),
    ("workload", "dry-run", "workload::every_preset_has_a_plan"),
    ("workload", "quiet", "workload::what_is_printed_says_the_scale"),
    ("workload", "no-stats-page", "workload::what_is_printed_says_the_scale"),
    ("workload", "no-watch", "workload::what_is_printed_says_the_scale"),
];

/// Whether the flag sets a key of the table.
fn is_key(verb: &str, flag: &str) -> bool {
    keys::flags(verb).any(|(key, of_key)| key.long(of_key) == flag)
}

/// The text of a test.
fn text_of(test: &str) -> Option<String> {
    let (module, name) = test.split_once("::")?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/{module}.rs"));
    let all = std::fs::read_to_string(file).ok()?;
    let from = all.find(&format!("#[test]\nfn {name}("))?;
    let end = all[from..].find("\n}\n").map_or(all.len(), |end| from + end);
    Some(all[from..end].to_owned())
}

#[test]
fn every_flag_has_a_test_of_its_effect() {
    let mut seen = BTreeSet::new();
    for verb in Cli::command().get_subcommands() {
        for flag in verb.get_arguments().filter(|flag| !flag.is_positional()) {
            let Some(long) = flag.get_long() else { panic!("{}: {flag}", verb.get_name()) };
            if long == "help" || is_key(verb.get_name(), long) {
                continue;
            }
            seen.insert((verb.get_name().to_owned(), long.to_owned()));
            let row = TESTED.iter().find(|row| row.0 == verb.get_name() && row.1 == long);
            let Some((.., test)) = row else {
                panic!("{} --{long} is new: name a test of what it does", verb.get_name());
            };
            let Some(text) = text_of(test) else { panic!("there is no test {test}") };
            let by_letter = |letter: char| {
                [' ', '"'].iter().any(|end| text.contains(&format!("-{letter}{end}")))
            };
            let uses =
                text.contains(&format!("--{long}")) || flag.get_short().is_some_and(by_letter);
            assert!(uses, "{test} does not use {} --{long}", verb.get_name());
        }
    }
    for (verb, flag, _) in TESTED {
        let key = ((*verb).to_owned(), (*flag).to_owned());
        assert!(seen.contains(&key), "{verb} has no flag --{flag}, or it is a key's");
    }
}
