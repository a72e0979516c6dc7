// The texts that no JSON parser may accept, as named by JSONTestSuite. Those that are not even UTF-8 are in
// receive.test.ts.

import { describe, expect, test } from '@jest/globals';
import { scanJson } from '../../../../src/core/contract/json.js';

/** One case per line: its name and, after the first space, its text. */
const ONE_LINE = String.raw`
array_1_true_without_comma [1 true]
array_colon_instead_of_comma ["": 1]
array_comma_after_close [""],
array_comma_and_number [,1]
array_double_comma [1,,2]
array_double_extra_comma ["x",,]
array_extra_close ["x"]]
array_extra_comma ["",]
array_incomplete ["x"
array_incomplete_invalid_value [x
array_inner_array_no_comma [3[4]]
array_items_separated_by_semicolon [1:2]
array_just_comma [,]
array_just_minus [-]
array_missing_value [   , ""]
array_number_and_comma [1,]
array_number_and_several_commas [1,,]
array_star_inside [*]
array_unclosed [""
array_unclosed_trailing_comma [1,
array_unclosed_with_object_inside [{}
incomplete_false [fals]
incomplete_null [nul]
incomplete_true [tru]
number_++ [++1234]
number_+1 [+1]
number_+Inf [+Inf]
number_-01 [-01]
number_-1.0. [-1.0.]
number_-2. [-2.]
number_-NaN [-NaN]
number_.-1 [.-1]
number_.2e-3 [.2e-3]
number_0.1.2 [0.1.2]
number_0.3e+ [0.3e+]
number_0.3e [0.3e]
number_0.e1 [0.e1]
number_0_capital_E+ [0E+]
number_0_capital_E [0E]
number_0e+ [0e+]
number_0e [0e]
number_1.0e+ [1.0e+]
number_1.0e- [1.0e-]
number_1.0e [1.0e]
number_1_000 [1 000.0]
number_1eE2 [1eE2]
number_2.e+3 [2.e+3]
number_2.e-3 [2.e-3]
number_2.e3 [2.e3]
number_9.e+ [9.e+]
number_Inf [Inf]
number_NaN [NaN]
number_U+FF11_fullwidth_digit_one [１]
number_expression [1+2]
number_hex_1_digit [0x1]
number_hex_2_digits [0x42]
number_infinity [Infinity]
number_invalid+- [0e+-1]
number_invalid-negative-real [-123.123foo]
number_minus_infinity [-Infinity]
number_minus_sign_with_trailing_garbage [-foo]
number_minus_space_1 [- 1]
number_neg_int_starting_with_zero [-012]
number_neg_real_without_int_part [-.123]
number_neg_with_garbage_at_end [-1x]
number_real_garbage_after_e [1ea]
number_real_without_fractional_part [1.]
number_starting_with_dot [.123]
number_with_alpha [1.2a-3]
number_with_alpha_char [1.8011670033376514H-308]
number_with_leading_zero [012]
object_bad_value ["x", truth]
object_bracket_key {[: "x"}
object_comma_instead_of_colon {"x", null}
object_double_colon {"x"::"b"}
object_emoji {🇨🇭}
object_garbage_at_end {"a":"a" 123}
object_key_with_single_quotes {key: 'value'}
object_missing_colon {"a" b}
object_missing_key {:"b"}
object_missing_semicolon {"a" "b"}
object_missing_value {"a":
object_no-colon {"a"
object_non_string_key {1:1}
object_non_string_key_but_huge_number_instead {9999E9999:1}
object_repeated_null_null {null:null,null:null}
object_several_trailing_commas {"id":0,,,,,}
object_single_quote {'a':0}
object_trailing_comma {"id":0,}
object_trailing_comment {"a":"b"}/**/
object_trailing_comment_open {"a":"b"}/**//
object_trailing_comment_slash_open {"a":"b"}//
object_trailing_comment_slash_open_incomplete {"a":"b"}/
object_two_commas_in_a_row {"a":"b",,"c":"d"}
object_unquoted_key {a: "b"}
object_unterminated-value {"a":"a
object_with_single_string { "foo" : "bar", "a" }
object_with_trailing_garbage {"a":"b"}#
string_1_surrogate_then_escape ["\uD800\"]
string_1_surrogate_then_escape_u ["\uD800\u"]
string_1_surrogate_then_escape_u1 ["\uD800\u1"]
string_1_surrogate_then_escape_u1x ["\uD800\u1x"]
string_accentuated_char_no_quotes [é]
string_escape_x ["\x00"]
string_escaped_backslash_bad ["\\\"]
string_escaped_emoji ["\🌀"]
string_incomplete_escape ["\"]
string_incomplete_escaped_character ["\u00A"]
string_incomplete_surrogate ["\uD834\uDd"]
string_incomplete_surrogate_escape_invalid ["\uD800\uD800\x"]
string_invalid_backslash_esc ["\a"]
string_invalid_unicode_escape ["\uqqqq"]
string_leading_uescaped_thinspace [\u0020"asd"]
string_no_quotes_with_bad_escape [\n]
string_single_doublequote "
string_single_quote ['single quote']
string_single_string_no_double_quotes abc
string_start_escape_unclosed ["\
string_unicode_CapitalU "\UA66D"
string_with_trailing_garbage ""x
structure_angle_bracket_. <.>
structure_angle_bracket_null [<null>]
structure_array_trailing_garbage [1]x
structure_array_with_extra_array_close [1]]
structure_array_with_unclosed_string ["asd]
structure_ascii-unicode-identifier aå
structure_capitalized_True [True]
structure_close_unopened_array 1]
structure_comma_instead_of_closing_brace {"x": true,
structure_double_array [][]
structure_end_array ]
structure_lone-open-bracket [
structure_number_with_trailing_garbage 2@
structure_object_followed_by_closing_object {}}
structure_object_unclosed_no_value {"":
structure_object_with_comment {"a":/*comment*/"b"}
structure_object_with_trailing_garbage {"a": true} "x"
structure_open_array_apostrophe ['
structure_open_array_comma [,
structure_open_array_open_object [{
structure_open_array_open_string ["a
structure_open_array_string ["a"
structure_open_object {
structure_open_object_close_array {]
structure_open_object_comma {,
structure_open_object_open_array {[
structure_open_object_open_string {"a
structure_open_object_string_with_apostrophes {'a'
structure_open_open ["\{["\{["\{["\{
structure_single_star *
structure_trailing_# {"a":"b"}#{}
structure_uescaped_LF_before_string [\u000A""]
structure_unclosed_array [1
structure_unclosed_array_partial_null [ false, nul
structure_unclosed_array_unfinished_false [ true, fals
structure_unclosed_array_unfinished_true [ false, tru
structure_unclosed_object {"asd":"asd"
structure_unicode-identifier å
`;

const WITH_SPACE_OR_RARE_CHARACTERS = [
  ['array_newlines_unclosed', '["a",\n4\n,1,'],
  ['array_spaces_vertical_tab_formfeed', '["\va"\f]'],
  ['array_unclosed_with_new_lines', '[1,\n1\n,1'],
  ['multidigit_number_then_00', '123\0'],
  ['single_space', ' '],
  ['string_backslash_00', '["\\\0"]'],
  ['string_escaped_ctrl_char_tab', '["\\\t"]'],
  ['string_unescaped_ctrl_char', '["a\0a"]'],
  ['string_unescaped_newline', '["new\nline"]'],
  ['string_unescaped_tab', '["\t"]'],
  ['structure_100000_opening_arrays', '['.repeat(100_000)],
  ['structure_open_array_object', '[{"":'.repeat(50_000)],
  ['structure_U+2060_word_joined', '[\u2060]'],
  ['structure_UTF8_BOM_no_data', '\ufeff'],
  ['structure_no_data', ''],
  ['structure_null-byte-outside-string', '[\0]'],
  ['structure_whitespace_U+2060_word_joiner', '[\u2060]'],
  ['structure_whitespace_formfeed', '[\f]'],
  ['a no-break space around the value', '\u00a0[]'],
] as const;

const cases = ONE_LINE.trim()
  .split('\n')
  .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] as const);

describe('a text that no strict parser may accept', () => {
  test.each([...cases, ...WITH_SPACE_OR_RARE_CHARACTERS])('S0-22 S0-24: n_%s is rejected', (_name, text) => {
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
    expect(scanJson(text, 32)).toMatchObject({ ok: false });
  });
});
