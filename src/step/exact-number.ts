// C89: a number is carried as a double, and written again as the shortest decimal that means this double. Below 2^53
// every whole number survives that, and a fraction is rounded as fractions are. From there on whole numbers are rounded
// too: 9007199254740993 becomes 9007199254740992, and another account is paid.

/** Below it doubles hold every whole number. */
const EXACT_BELOW = 2 ** 53;

/** Whether the number that `written` means comes out as it went in. @param value `written` as a double, finite */
export const isExactNumber = (written: string, value: number): boolean =>
  Math.abs(value) < EXACT_BELOW || normalizeDecimal(written) === normalizeDecimal(String(value));

/** A decimal as its digits without zeros at either end, and where the point stands: equal numbers are equal texts. */
function normalizeDecimal(decimal: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(decimal) ?? [];
  const digits = `${whole}${fraction}`;
  const significant = digits.replace(/^0+/, '');
  const point = whole.length + Number(exponent) - (digits.length - significant.length);
  return `${sign}${significant.replace(/0+$/, '')}e${point}`;
}
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
