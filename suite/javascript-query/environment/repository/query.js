function parse(text) {
  const result = {};
  for (const [name, value] of new URLSearchParams(text)) {
    result[name] = value;
  }
  return result;
}

module.exports = { parse };
