// C89: a number is parsed into a double and serialized as the shortest decimal that denotes this double. Below 2^53
// every integer survives this, and only fractions are rounded. From 2^53 on, integers are rounded too:
// 9007199254740993 becomes 9007199254740992, which can be the number of another account.

/** Doubles represent every integer below this bound. */
const EXACT_BELOW = 2 ** 53;

/** Whether the decimal `written` survives the conversion to a double. @param value `written` as a finite double */
export const isExactNumber = (written: string, value: number): boolean =>
  Math.abs(value) < EXACT_BELOW || normalizeDecimal(written) === normalizeDecimal(String(value));

/** Returns the digits without zeros at either end, and the position of the point: equal numbers give equal texts. */
function normalizeDecimal(decimal: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(decimal) ?? [];
  const digits = `${whole}${fraction}`;
  const significant = digits.replace(/^0+/, '');
  const point = whole.length + Number(exponent) - (digits.length - significant.length);
  return `${sign}${significant.replace(/0+$/, '')}e${point}`;
}
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
