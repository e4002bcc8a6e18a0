package Domains;
use strict;
use warnings;
use Exporter "import";
our @EXPORT_OK = qw(is_ours);

sub is_ours {
    my ($host, $domain) = @_;
    return $host =~ /^$domain$/ ? 1 : 0;
}

1;
