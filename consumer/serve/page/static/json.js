// JSON whose integers beyond 2^53 stay exact: a TSO has 59 bits and more, so it is kept as its digits.

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;

/** Parse JSON; integers of 16 digits and more become strings. Raises SyntaxError. */
export function parse(text) {
  return JSON.parse(text.replace(TOKENS, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}
