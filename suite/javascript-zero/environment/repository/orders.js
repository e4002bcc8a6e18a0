function quantity(order) {
  return order.quantity || 1;
}

module.exports = { quantity };
