// A config, written as TOML: for somebody who goes on from the form to its text.

/** Values of a config as TOML. */
export function toToml(values, path = []) {
  const plain = Object.entries(values).filter(([, value]) => !isTable(value));
  const tables = Object.entries(values).filter(([, value]) => isTable(value));
  const head = path.length && plain.length ? [`[${path.map(key).join(".")}]`] : [];
  const own = [...head, ...plain.map(([name, value]) => `${key(name)} = ${JSON.stringify(value)}`)];
  const parts = tables.map(([name, value]) => toToml(value, [...path, name]));
  return [own.join("\n"), ...parts].filter(Boolean).join("\n\n");
}

function isTable(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function key(name) {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name);
}
