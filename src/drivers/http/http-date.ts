// HTTP dates in the three forms of RFC 9110, section 5.6.7.

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** `Sun, 06 Nov 1994 08:49:37 GMT`, and the two old forms that RFC 9110 asks to accept. */
const dateForms = [
  /^[a-z]{3}, (?<day>\d{2}) (?<month>[a-z]{3}) (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2}) gmt$/i,
  /^[a-z]{6,9}, (?<day>\d{2})-(?<month>[a-z]{3})-(?<year>\d{2}) (?<time>\d{2}:\d{2}:\d{2}) gmt$/i,
  /^[a-z]{3} (?<month>[a-z]{3}) (?<day>[\d ]\d) (?<time>\d{2}:\d{2}:\d{2}) (?<year>\d{4})$/i,
];

/** Milliseconds since the epoch; undefined when `value` is no HTTP date. */
export function httpDate(value: string | undefined): number | undefined {
  const groups = dateForms.map((form) => form.exec(value?.trim() ?? '')?.groups).find((found) => found);
  if (groups === undefined) return undefined;
  const month = months.indexOf((groups.month ?? '').toLowerCase());
  const [hours = 0, minutes = 0, seconds = 0] = (groups.time ?? '').split(':').map(Number);
  const day = Number(groups.day);
  if (month < 0 || day < 1 || day > 31 || hours > 23 || minutes > 59 || seconds > 60) return undefined;
  return Date.UTC(fullYear(groups.year ?? ''), month, day, hours, minutes, seconds);
}

/** Two digits mean the year at most 50 years ahead. */
function fullYear(digits: string): number {
  if (digits.length > 2) return Number(digits);
  const now = new Date().getUTCFullYear();
  const year = now - (now % 100) + Number(digits);
  return year > now + 50 ? year - 100 : year;
}
