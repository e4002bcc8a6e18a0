function sorted(numbers) {
  return numbers.sort();
}

module.exports = { sorted };
