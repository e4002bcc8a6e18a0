use strict;
use warnings;
use Test::More;
use Labels qw(label);

is(label("a"), "a", "name");
is(label(""), "unknown", "empty");
is(label("0"), "0", "zero");
is(label(undef), "unknown", "missing");
done_testing();
