// What an output is known by while it is multiplied: a hash, or its column. Its values make the key
// from the last one to the first.
namespace polysparse {

/// An output: its value, and its column, or -1 if it is in none.
template <class Value>
struct Output {
    Value value;
    int64 column;
};

/// Keys that are hashes: a column is a bucket.
struct HashKeys {
    Hasher hasher;

    POLYSPARSE_DEVICE uint64 start() const { return hasher.salt; }
    POLYSPARSE_DEVICE uint64 of(int64 column) const {
        return hasher.mix(static_cast<uint64>(column));
    }
    /// The key of a tuple of k values, given that of its tail.
    POLYSPARSE_DEVICE uint64 join(int, uint64 own, uint64 tail) const {
        return Hasher::join(own, tail);
    }
    /// The same for a tuple of a term.
    POLYSPARSE_DEVICE uint64 join(const Member&, int64 column, uint64 tail) const {
        return hasher.lead(static_cast<uint64>(column), tail);
    }
    /// The output of a tuple, by its degree or the first column of its term.
    template <class Of, class Value>
    POLYSPARSE_DEVICE Output<Value> finish(Of, uint64 key, Value value) const {
        return {hasher.is_negative(key) ? negative(value) : value, hasher.bucket(key)};
    }
};

/// Which columns of a basis there are.
struct Choice {
    const int64* chosen;  // nullptr for all
    const int64* starts;  // [c >> shift]: the first chosen column from there on
    int64 shift;

    template <class Value>
    POLYSPARSE_DEVICE Output<Value> find(int64 column, Value value) const {
        if (chosen == nullptr) return {value, column};
        const int64 from = starts[column >> shift], to = starts[(column >> shift) + 1];
        if (from == to) return {value, -1};
        const int64 place = last_at_most(chosen, from, to - 1, column);
        return {value, chosen[place] == column ? place : -1};
    }
};

/// Keys that are columns of a basis.
template <bool strict>
struct RankKeys {
    int64 n_features;
    const uint64* last;  // [d]: the last column of degree d
    Choice choice;

    POLYSPARSE_DEVICE uint64 start() const { return 0; }
    POLYSPARSE_DEVICE uint64 of(int64 column) const { return static_cast<uint64>(column); }
    POLYSPARSE_DEVICE uint64 join(int k, uint64 own, uint64 tail) const {
        const auto column = static_cast<int64>(own);
        if (k == 1) return tail + shift_of<1, strict, uint64>(n_features, column);
        if (k == 2) return tail + shift_of<2, strict, uint64>(n_features, column);
        if (k == 3) return tail + shift_of<3, strict, uint64>(n_features, column);
        return tail - simplex(k, n_features - 1 - column - (strict ? k - 1 : 0));
    }
    template <class Value>
    POLYSPARSE_DEVICE Output<Value> finish(int d, uint64 key, Value value) const {
        return choice.find(static_cast<int64>(last[d] + key), value);
    }
};

/// The same with groups.
struct GroupedKeys {
    int64 n_features;
    const uint64* last;    // [d]: the last column of degree d
    const uint64* depths;  // [k - 1][j]: the k-tuples of features that a later one than j leads
    Choice choice;

    POLYSPARSE_DEVICE uint64 start() const { return 0; }
    POLYSPARSE_DEVICE uint64 of(int64 column) const { return static_cast<uint64>(column); }
    POLYSPARSE_DEVICE uint64 join(int k, uint64 own, uint64 tail) const {
        return tail - __ldg(depths + (k - 1) * n_features + static_cast<int64>(own));
    }
    template <class Value>
    POLYSPARSE_DEVICE Output<Value> finish(int d, uint64 key, Value value) const {
        return choice.find(static_cast<int64>(last[d] + key), value);
    }
};

/// The same with terms.
struct TermKeys {
    Choice choice;

    POLYSPARSE_DEVICE uint64 start() const { return 0; }
    POLYSPARSE_DEVICE uint64 join(const Member& member, int64 column, uint64 tail) const {
        return tail + static_cast<uint64>(column - member.begin) * member.stride;
    }
    template <class Value>
    POLYSPARSE_DEVICE Output<Value> finish(uint64 first_column, uint64 key, Value value) const {
        return choice.find(static_cast<int64>(first_column + key), value);
    }
};

/// The keys of columns of some kind, of bases of some kind.
template <int kind, bool is_hashed>
struct KeysOf {
    using type = HashKeys;
};
template <>
struct KeysOf<with_powers, false> {
    using type = RankKeys<false>;
};
template <>
struct KeysOf<interactions, false> {
    using type = RankKeys<true>;
};
template <>
struct KeysOf<grouped, false> {
    using type = GroupedKeys;
};
template <>
struct KeysOf<of_terms, false> {
    using type = TermKeys;
};

}  // namespace polysparse
